import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import org.apache.zookeeper.server.quorum.QuorumPeerMain;

/**
 * One server of a ZooKeeper ensemble: its own main class, with its own configuration file. It ends with whoever
 * started it: at the end of standard input, whose other end only that one holds.
 */
public final class PeerServer {
    public static void main(String[] words) {
        Thread watch = new Thread(() -> {
            try (InputStream in = System.in) {
                in.transferTo(OutputStream.nullOutputStream());
            } catch (IOException gone) {
                // Gone is gone.
            }
            Runtime.getRuntime().halt(0);
        });
        watch.setDaemon(true);
        watch.start();
        QuorumPeerMain.main(words);
    }
}
