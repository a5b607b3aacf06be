import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.LongStream;
import org.apache.zookeeper.AsyncCallback.StatCallback;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.KeeperException.ConnectionLossException;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/**
 * A session that keeps a number of writes outstanding: each answer is followed at once by the next request. With one
 * outstanding it is a thread that waits for each answer; with more, the session's own thread takes the answers.
 */
final class Caller implements StatCallback {
    /** What the callers of a round share. */
    static final class Round {
        volatile boolean keep;
        volatile boolean over;
        final AtomicLong retried = new AtomicLong();
    }

    private final Round round;
    private final ZooKeeper session;
    private final int share;
    private final Random random;
    private final Semaphore finished = new Semaphore(0);
    private long[] took = new long[1024];
    private int kept;

    Caller(Round round, ZooKeeper session, int share, int seed) {
        this.round = round;
        this.session = session;
        this.share = share;
        this.random = new Random(seed);
    }

    void start() {
        if (share == 1) {
            new Thread(this::waitForEach).start();
            return;
        }
        // The paths come from here until the first answer, and from the session's thread from then on.
        String[] first = new String[share];
        Arrays.setAll(first, number -> next());
        for (String path : first) {
            session.setData(path, PeerLoad.VALUE, -1, this, System.nanoTime());
        }
    }

    /** Waits for the last answers. */
    void finish() throws InterruptedException {
        finished.acquire(share);
    }

    /** Microseconds that each write took that ended while it was measured. */
    LongStream took() {
        return Arrays.stream(took, 0, kept);
    }

    @Override
    public void processResult(int code, String path, Object began, Stat stat) {
        if (code == Code.CONNECTIONLOSS.intValue()) {
            // The caller waits for all of it.
            round.retried.incrementAndGet();
            session.setData(path, PeerLoad.VALUE, -1, this, began);
            return;
        }
        if (code != Code.OK.intValue()) {
            PeerLoad.fail("a write failed: " + Code.get(code));
        }
        note((Long) began);
        if (round.over) {
            finished.release();
        } else {
            session.setData(next(), PeerLoad.VALUE, -1, this, System.nanoTime());
        }
    }

    private void waitForEach() {
        try {
            while (!round.over) {
                String path = next();
                long began = System.nanoTime();
                while (!written(path)) {
                    round.retried.incrementAndGet();
                }
                note(began);
            }
        } catch (Exception why) {
            PeerLoad.fail("a write failed: " + why);
        }
        finished.release();
    }

    private boolean written(String path) throws Exception {
        try {
            session.setData(path, PeerLoad.VALUE, -1);
            return true;
        } catch (ConnectionLossException lost) {
            return false;
        }
    }

    private void note(long began) {
        if (!round.keep) {
            return;
        }
        if (kept == took.length) {
            took = Arrays.copyOf(took, 2 * kept);
        }
        took[kept++] = (System.nanoTime() - began) / 1000;
    }

    private String next() {
        return PeerLoad.path(random.nextInt(PeerLoad.KEYS));
    }
}
