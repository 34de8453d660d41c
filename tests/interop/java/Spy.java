import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import net.spy.memcached.CASResponse;
import net.spy.memcached.CASValue;
import net.spy.memcached.CachedData;
import net.spy.memcached.ConnectionFactoryBuilder;
import net.spy.memcached.FailureMode;
import net.spy.memcached.MemcachedClient;
import net.spy.memcached.auth.AuthDescriptor;
import net.spy.memcached.auth.PlainCallbackHandler;
import net.spy.memcached.internal.OperationFuture;
import net.spy.memcached.transcoders.SerializingTranscoder;

/** spymemcached. */
final class Spy implements Client {
    private final MemcachedClient client;
    private final boolean isBinary;

    Spy(InetSocketAddress server, boolean isBinary, String user, String password) throws Exception {
        SerializingTranscoder plain = new SerializingTranscoder(CachedData.MAX_SIZE);
        plain.setCompressionThreshold(Integer.MAX_VALUE);
        ConnectionFactoryBuilder.Protocol protocol =
            isBinary ? ConnectionFactoryBuilder.Protocol.BINARY : ConnectionFactoryBuilder.Protocol.TEXT;
        ConnectionFactoryBuilder builder = new ConnectionFactoryBuilder()
            .setProtocol(protocol).setOpTimeout(60_000).setTranscoder(plain).setFailureMode(FailureMode.Retry);
        if (user != null) {
            // A refused login is not tried again for ever.
            builder.setOpTimeout(5_000).setFailureMode(FailureMode.Cancel).setAuthDescriptor(
                new AuthDescriptor(new String[] {"PLAIN"}, new PlainCallbackHandler(user, password)));
        }
        this.isBinary = isBinary;
        client = new MemcachedClient(builder.build(), List.of(server));
    }

    private static <T> T wait(Future<T> future) throws Exception {
        return future.get(60, TimeUnit.SECONDS);
    }

    @Override
    public boolean set(String key, int seconds, byte[] value) throws Exception {
        return wait(client.set(key, seconds, value));
    }

    @Override
    public boolean setAll(Map<String, byte[]> items) throws Exception {
        List<OperationFuture<Boolean>> begun = new ArrayList<>();
        items.forEach((key, value) -> begun.add(client.set(key, HOUR, value)));
        boolean all = true;
        for (OperationFuture<Boolean> one : begun) {
            all &= wait(one);
        }
        return all;
    }

    @Override
    public boolean add(String key, byte[] value) throws Exception {
        return wait(client.add(key, HOUR, value));
    }

    @Override
    public boolean replace(String key, byte[] value) throws Exception {
        return wait(client.replace(key, HOUR, value));
    }

    @Override
    public boolean append(String key, byte[] value) throws Exception {
        return wait(client.append(key, value));
    }

    @Override
    public boolean prepend(String key, byte[] value) throws Exception {
        return wait(client.prepend(key, value));
    }

    @Override
    public byte[] get(String key) {
        return (byte[]) client.get(key);
    }

    @Override
    public Map<String, byte[]> getAll(List<String> keys) {
        Map<String, byte[]> found = new HashMap<>();
        client.getBulk(keys).forEach((key, value) -> found.put(key, (byte[]) value));
        return found;
    }

    @Override
    public long unique(String key) {
        return client.gets(key).getCas();
    }

    @Override
    public boolean cas(String key, long unique, byte[] value) {
        return client.cas(key, unique, HOUR, value) == CASResponse.OK;
    }

    @Override
    public boolean touch(String key, int seconds) throws Exception {
        return wait(client.touch(key, seconds));
    }

    @Override
    public byte[] getAndTouch(String key, int seconds) {
        CASValue<Object> found = client.getAndTouch(key, seconds);
        return found == null ? null : (byte[]) found.getValue();
    }

    @Override
    public long incr(String key, long by) {
        return client.incr(key, by);
    }

    @Override
    public long decr(String key, long by) {
        return client.decr(key, by);
    }

    @Override
    public long incr(String key, long by, long first) {
        return client.incr(key, by, first, HOUR);
    }

    @Override
    public boolean delete(String key) throws Exception {
        return wait(client.delete(key));
    }

    @Override
    public void flush() throws Exception {
        wait(client.flush());
    }

    @Override
    public String version() {
        return client.getVersions().values().iterator().next();
    }

    @Override
    public Map<String, String> stats() {
        return client.getStats().values().iterator().next();
    }

    @Override
    public void more(Script script) throws Exception {
        script.check("incr at once", wait(client.asyncIncr("number:async", 5)), 15L);
        script.check("decr, missing, begins with its number", client.decr("number:none:2", 1, 9, HOUR), 9L);
        script.check("cas, missing", client.cas("no:cas", 1, Script.bytes("x")), CASResponse.NOT_FOUND);
        script.check("stats settings", client.getStats("settings").values().iterator().next().get("evictions"), "on");
        client.set("object", HOUR, List.of(1, "two", 3.0));
        script.check("an object", client.get("object"), List.of(1, "two", 3.0));
        client.set("string", HOUR, "Grüße");
        script.check("a string", client.get("string"), "Grüße");
        if (!isBinary) {
            return;
        }
        long unique = client.gets("string").getCas();
        script.check("delete by unique, out of date", wait(client.delete("string", unique + 1)), false);
        script.check("delete by unique", wait(client.delete("string", unique)), true);
    }

    @Override
    public void close() {
        client.shutdown(5, TimeUnit.SECONDS);
    }
}
