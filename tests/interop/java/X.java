import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import net.rubyeye.xmemcached.CASOperation;
import net.rubyeye.xmemcached.Counter;
import net.rubyeye.xmemcached.MemcachedClient;
import net.rubyeye.xmemcached.XMemcachedClientBuilder;
import net.rubyeye.xmemcached.command.BinaryCommandFactory;
import net.rubyeye.xmemcached.command.TextCommandFactory;
import net.rubyeye.xmemcached.transcoders.SerializingTranscoder;

/** xmemcached. */
final class X implements Client {
    private final MemcachedClient client;

    X(InetSocketAddress server, boolean isBinary) throws Exception {
        XMemcachedClientBuilder builder = new XMemcachedClientBuilder(List.of(server));
        builder.setCommandFactory(isBinary ? new BinaryCommandFactory() : new TextCommandFactory());
        builder.setOpTimeout(60_000);
        builder.setConnectTimeout(60_000);
        SerializingTranscoder plain = new SerializingTranscoder(20 << 20);
        plain.setCompressionThreshold(Integer.MAX_VALUE);
        builder.setTranscoder(plain);
        client = builder.build();
    }

    @Override
    public boolean set(String key, int seconds, byte[] value) throws Exception {
        return client.set(key, seconds, value);
    }

    @Override
    public boolean setAll(Map<String, byte[]> items) throws Exception {
        for (Map.Entry<String, byte[]> item : items.entrySet()) {
            client.setWithNoReply(item.getKey(), HOUR, item.getValue());
        }
        // Replies come in order, so after this all are stored.
        return client.set("after:all", HOUR, new byte[0]);
    }

    @Override
    public boolean add(String key, byte[] value) throws Exception {
        return client.add(key, HOUR, value);
    }

    @Override
    public boolean replace(String key, byte[] value) throws Exception {
        return client.replace(key, HOUR, value);
    }

    @Override
    public boolean append(String key, byte[] value) throws Exception {
        return client.append(key, value);
    }

    @Override
    public boolean prepend(String key, byte[] value) throws Exception {
        return client.prepend(key, value);
    }

    @Override
    public byte[] get(String key) throws Exception {
        return client.get(key);
    }

    @Override
    public Map<String, byte[]> getAll(List<String> keys) throws Exception {
        Map<String, byte[]> found = client.get(keys);
        return found == null ? new HashMap<>() : found;
    }

    @Override
    public long unique(String key) throws Exception {
        return client.gets(key).getCas();
    }

    @Override
    public boolean cas(String key, long unique, byte[] value) throws Exception {
        return client.cas(key, HOUR, value, unique);
    }

    @Override
    public boolean touch(String key, int seconds) throws Exception {
        return client.touch(key, seconds);
    }

    @Override
    public byte[] getAndTouch(String key, int seconds) throws Exception {
        return client.getAndTouch(key, seconds);
    }

    @Override
    public long incr(String key, long by) throws Exception {
        return client.incr(key, by);
    }

    @Override
    public long decr(String key, long by) throws Exception {
        return client.decr(key, by);
    }

    @Override
    public long incr(String key, long by, long first) throws Exception {
        return client.incr(key, by, first, client.getOpTimeout(), HOUR);
    }

    @Override
    public boolean delete(String key) throws Exception {
        return client.delete(key);
    }

    @Override
    public void flush() throws Exception {
        client.flushAll();
    }

    @Override
    public String version() throws Exception {
        return client.getVersions().values().iterator().next();
    }

    @Override
    public Map<String, String> stats() throws Exception {
        return client.getStats().values().iterator().next();
    }

    @Override
    public void more(Script script) throws Exception {
        Counter counter = client.getCounter("number:counter", 5);
        script.check("a counter", List.of(counter.get(), counter.incrementAndGet(), counter.addAndGet(10)), List.of(5L, 6L, 16L));
        boolean swapped = client.cas("get:100", HOUR, new CASOperation<byte[]>() {
            @Override
            public int getMaxTries() {
                return 3;
            }

            @Override
            public byte[] getNewValue(long unique, byte[] value) {
                return Script.joined(value, Script.TAIL);
            }
        });
        script.check("cas by an operation", swapped, true);
        script.check("cas by an operation: value", client.get("get:100"), Script.joined(Script.valueOf(100), Script.TAIL));
        script.check("gets of many", client.gets(List.of("get:0", "get:3072", "no")).size(), 2);
        client.addWithNoReply("quiet", HOUR, "1");
        client.replaceWithNoReply("quiet", HOUR, "5");
        client.incrWithNoReply("quiet", 3);
        client.decrWithNoReply("quiet", 1);
        client.appendWithNoReply("quiet", "0");
        client.prependWithNoReply("quiet", "1");
        script.check("commands without a reply", client.get("quiet"), "170");
        client.deleteWithNoReply("quiet");
        script.check("delete without a reply", client.get("quiet"), null);
        client.withNamespace("ns", inner -> inner.set("k", HOUR, "inside"));
        script.check("a namespace", client.withNamespace("ns", inner -> inner.get("k")), "inside");
        client.invalidateNamespace("ns");
        script.check("a namespace that ended", client.withNamespace("ns", inner -> inner.get("k")), null);
        client.set("object", HOUR, List.of(1, "two", 3.0));
        script.check("an object", client.get("object"), List.of(1, "two", 3.0));
    }

    @Override
    public void close() throws Exception {
        client.shutdown();
    }
}
