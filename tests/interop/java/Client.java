import java.util.List;
import java.util.Map;

/** What the clients for Java have in common. Values are bytes as they are; times are in seconds. */
interface Client {
    int HOUR = 3600;

    boolean set(String key, int seconds, byte[] value) throws Exception;

    /** Stores all of them, without waiting for one before the next where the client can do that. */
    boolean setAll(Map<String, byte[]> items) throws Exception;

    boolean add(String key, byte[] value) throws Exception;

    boolean replace(String key, byte[] value) throws Exception;

    boolean append(String key, byte[] value) throws Exception;

    boolean prepend(String key, byte[] value) throws Exception;

    /** The value, or null. */
    byte[] get(String key) throws Exception;

    Map<String, byte[]> getAll(List<String> keys) throws Exception;

    /** The unique of an item that exists. */
    long unique(String key) throws Exception;

    boolean cas(String key, long unique, byte[] value) throws Exception;

    boolean touch(String key, int seconds) throws Exception;

    /** The value, or null; its time to live is another then. The text protocols of both clients have none. */
    byte[] getAndTouch(String key, int seconds) throws Exception;

    long incr(String key, long by) throws Exception;

    long decr(String key, long by) throws Exception;

    /** Increments, or begins with `first`. */
    long incr(String key, long by, long first) throws Exception;

    boolean delete(String key) throws Exception;

    void flush() throws Exception;

    String version() throws Exception;

    Map<String, String> stats() throws Exception;

    /** What this client has besides. */
    void more(Script script) throws Exception;

    void close() throws Exception;
}
