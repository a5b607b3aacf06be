import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.Version;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;

/**
 * The load on a ZooKeeper ensemble: makes the nodes, says that it is ready, and then measures one round for each line
 * {@code round CLIENTS OUTSTANDING WARM-UP-MILLISECONDS MILLISECONDS} on standard input. It ends with that.
 */
public final class PeerLoad {
    /** Nodes that are written, as many as there are keys in the measurement of Troth. */
    static final int KEYS = 10_000;
    /** Their paths, made once: making them is none of ZooKeeper's work. */
    private static final String[] PATHS = new String[KEYS];
    /** What is written. */
    static final byte[] VALUE = new byte[256];
    /** How many nodes are made at a time before the first round. */
    private static final int PREPARING = 100;
    /** How long the ensemble may take to answer at first, in seconds. */
    private static final int PATIENCE = 60;
    /** What a session asks for: how long it may be out of touch, in milliseconds. */
    private static final int SESSION = 30_000;

    static {
        Arrays.fill(VALUE, (byte) 7);
        Arrays.setAll(PATHS, number -> String.format("/key-%012d", number));
    }

    public static void main(String[] words) {
        try {
            prepare(words[0]);
            say("{\"ready\":\"ZooKeeper " + Version.getVersion() + "\"}");
            BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
            for (String line = orders.readLine(); line != null; line = orders.readLine()) {
                String[] order = line.trim().split(" ");
                if (order.length != 5 || !order[0].equals("round")) {
                    throw new IllegalArgumentException("an order that is none: " + line);
                }
                int clients = Integer.parseInt(order[1]);
                int outstanding = Integer.parseInt(order[2]);
                round(words[0], clients, outstanding, Long.parseLong(order[3]), Long.parseLong(order[4]));
            }
            Runtime.getRuntime().halt(0);
        } catch (Exception why) {
            fail(why.toString());
        }
    }

    static void fail(String why) {
        System.err.println(why);
        Runtime.getRuntime().halt(1);
    }

    static String path(int number) {
        return PATHS[number];
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private static ZooKeeper connect(String servers) throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper session = new ZooKeeper(servers, SESSION, event -> {
            if (event.getState() == KeeperState.SyncConnected) {
                connected.countDown();
            }
        });
        if (!connected.await(PATIENCE, TimeUnit.SECONDS)) {
            throw new IllegalStateException("no session after " + PATIENCE + " s");
        }
        return session;
    }

    /** Makes every node. */
    private static void prepare(String servers) throws Exception {
        ZooKeeper session = connect(servers);
        Semaphore room = new Semaphore(PREPARING);
        for (int number = 0; number < KEYS; number++) {
            room.acquire();
            session.create(path(number), VALUE, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT, (code, path, context, name) -> {
                if (code != Code.OK.intValue() && code != Code.NODEEXISTS.intValue()) {
                    fail("a node cannot be made: " + Code.get(code));
                }
                room.release();
            }, null);
        }
        room.acquire(PREPARING);
        session.close();
    }

    /** One warm-up and one measurement. */
    private static void round(String servers, int clients, int outstanding, long warmUp, long measured)
            throws Exception {
        Caller.Round round = new Caller.Round();
        List<ZooKeeper> sessions = new ArrayList<>();
        for (int number = 0; number < clients; number++) {
            sessions.add(connect(servers));
        }
        List<Caller> callers = new ArrayList<>();
        for (int number = 0; number < clients; number++) {
            int share = outstanding / clients + (number < outstanding % clients ? 1 : 0);
            callers.add(new Caller(round, sessions.get(number), share, number));
        }
        for (Caller caller : callers) {
            caller.start();
        }
        Thread.sleep(warmUp);
        say("{\"measuring\":true}");
        long began = System.nanoTime();
        round.keep = true;
        Thread.sleep(measured);
        round.keep = false;
        double seconds = (System.nanoTime() - began) / 1e9;
        say("{\"measuring\":false}");
        round.over = true;
        for (Caller caller : callers) {
            caller.finish();
        }
        for (ZooKeeper session : sessions) {
            session.close();
        }
        long[] took = callers.stream().flatMapToLong(Caller::took).sorted().toArray();
        say(String.format(
                "{\"operations\":%d,\"seconds\":%s,\"p50_us\":%d,\"p99_us\":%d,\"retried\":%d}",
                took.length, seconds, share(took, 0.50), share(took, 0.99), round.retried.get()));
    }

    /** The value that this share of the sorted values does not exceed. */
    private static long share(long[] sorted, double share) {
        return sorted.length == 0 ? 0 : sorted[Math.min((int) (sorted.length * share), sorted.length - 1)];
    }
}
