import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.logging.LogManager;

/** Runs a client through its whole API; see run_script in larder_test.py for the lines that this speaks. */
final class Script {
    static final byte[] TAIL = bytes("\r\n<tail>");
    private static final int[] SIZES = {0, 1, 100, 3 << 10, 20 << 10, 100 << 10, 700 << 10, (1 << 20) - 512};
    private static final int[] LARGE_SIZES = {1 << 20, 5 << 20, (8 << 20) - 512};
    private static final int[] BATCHES = {1, 2, 50, 1000};
    private static final String[] USES =
        {"get", "add", "replace", "append", "prepend", "cas", "stale", "delete", "touch", "gat"};

    private final BufferedReader answers = new BufferedReader(new InputStreamReader(System.in));
    private final PrintStream out;
    private final Client client;
    private final boolean isBinary;

    private Script(Client client, boolean isBinary, PrintStream out) {
        this.client = client;
        this.isBinary = isBinary;
        this.out = out;
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static byte[] valueOf(int size) {
        byte[] value = new byte[size];
        for (int at = 0; at < size; at++) {
            value[at] = (byte) (at % 256 * 31 + size);
        }
        return value;
    }

    static byte[] joined(byte[] first, byte[] second) {
        byte[] whole = Arrays.copyOf(first, first.length + second.length);
        System.arraycopy(second, 0, whole, first.length, second.length);
        return whole;
    }

    private static String shown(Object value) {
        String text = value instanceof byte[] bytes
            ? bytes.length + " bytes, " + Arrays.toString(Arrays.copyOf(bytes, Math.min(bytes.length, 20)))
            : String.valueOf(value);
        return text.substring(0, Math.min(text.length(), 150)).replace('\n', ' ').replace('\r', ' ');
    }

    void check(String name, Object got, Object want) {
        if (Objects.deepEquals(got, want)) {
            out.println("ok " + name);
        } else {
            out.println("not ok " + name + ": got " + shown(got) + ", want " + shown(want));
        }
    }

    private String ask(String line) throws Exception {
        out.println(line);
        return answers.readLine().trim();
    }

    private void checkSecondsLeft(String name, String key, int most) throws Exception {
        String left = ask("ttl " + key);
        boolean fits = left.matches("\\d+") && most - 100 <= Integer.parseInt(left) && Integer.parseInt(left) <= most;
        check(name + ": " + left + " seconds left", fits, true);
    }

    private static Map<String, byte[]> batch(int count) {
        Map<String, byte[]> items = new LinkedHashMap<>();
        for (int at = 0; at < count; at++) {
            items.put("batch:" + count + ":" + at, valueOf(at));
        }
        return items;
    }

    private Map<Integer, Long> prepare() throws Exception {
        Map<Integer, Long> uniques = new HashMap<>();
        for (int size : SIZES) {
            for (String use : USES) {
                check("set " + use + " " + size, client.set(use + ":" + size, Client.HOUR, valueOf(size)), true);
            }
            uniques.put(size, client.unique("stale:" + size));
            client.set("stale:" + size, Client.HOUR, valueOf(size));
        }
        for (int count : BATCHES) {
            check("set of " + count, client.setAll(batch(count)), true);
        }
        for (String name : List.of("incr", "decr", "async")) {
            client.set("number:" + name, Client.HOUR, bytes(name.equals("async") ? "10" : "1234567890"));
        }
        client.set("number:wrap", Client.HOUR, bytes("18446744073709551615"));
        client.set("flushed", Client.HOUR, bytes("x"));
        client.set("flushed:large", Client.HOUR, valueOf(100 << 10));
        return uniques;
    }

    private void bySize(int size, long stale) throws Exception {
        byte[] value = valueOf(size);
        check("get " + size, client.get("get:" + size), value);
        check("add " + size + ", there", client.add("add:" + size, TAIL), false);
        check("add " + size + ", value", client.get("add:" + size), value);
        check("replace " + size, client.replace("replace:" + size, TAIL), true);
        check("replace " + size + ", value", client.get("replace:" + size), TAIL);
        check("append " + size, client.append("append:" + size, TAIL), true);
        check("append " + size + ", value", client.get("append:" + size), joined(value, TAIL));
        check("prepend " + size, client.prepend("prepend:" + size, TAIL), true);
        check("prepend " + size + ", value", client.get("prepend:" + size), joined(TAIL, value));
        check("cas " + size, client.cas("cas:" + size, client.unique("cas:" + size), TAIL), true);
        check("cas " + size + ", value", client.get("cas:" + size), TAIL);
        check("cas " + size + ", out of date", client.cas("stale:" + size, stale, TAIL), false);
        check("cas " + size + ", out of date: value", client.get("stale:" + size), value);
        check("touch " + size, client.touch("touch:" + size, 7200), true);
        checkSecondsLeft("touch " + size, "touch:" + size, 7200);
        check("touch " + size + ", value", client.get("touch:" + size), value);
        if (isBinary) {
            check("getAndTouch " + size, client.getAndTouch("gat:" + size, 7200), value);
            checkSecondsLeft("getAndTouch " + size, "gat:" + size, 7200);
        }
        check("delete " + size, client.delete("delete:" + size), true);
        check("delete " + size + ", value", client.get("delete:" + size), null);
    }

    private void missing() throws Exception {
        check("get, missing", client.get("no"), null);
        check("replace, missing", client.replace("no", TAIL), false);
        check("append, missing", client.append("no", TAIL), false);
        check("prepend, missing", client.prepend("no", TAIL), false);
        check("touch, missing", client.touch("no", 10), false);
        check("delete, missing", client.delete("no"), false);
        check("add, missing", client.add("no:add", TAIL), true);
        check("add, missing: value", client.get("no:add"), TAIL);
        check("incr, missing, begins with its number", client.incr("number:none", 3, 7), 7L);
        check("incr of it", client.incr("number:none", 3, 7), 10L);
    }

    private void act(Map<Integer, Long> uniques) throws Exception {
        for (int size : SIZES) {
            bySize(size, uniques.get(size));
        }
        for (int count : BATCHES) {
            Map<String, byte[]> want = batch(count);
            List<String> keys = new ArrayList<>(want.keySet());
            keys.addAll(List.of("no:1", "no:2"));
            Map<String, byte[]> found = client.getAll(keys);
            check("get of " + count + ", keys", found.keySet(), want.keySet());
            boolean same = want.keySet().stream().allMatch(key -> Arrays.equals(found.get(key), want.get(key)));
            check("get of " + count + ", values", same, true);
        }
        missing();
        check("incr", client.incr("number:incr", 10), 1234567900L);
        check("incr, again", client.incr("number:incr", 1), 1234567901L);
        check("decr", client.decr("number:decr", 90), 1234567800L);
        check("incr past 2^64", client.incr("number:wrap", 2), 1L);
        check("version", client.version(), "1.6.45");
        check("stats", client.stats().get("version"), "1.6.45");
        client.more(this);
        client.set("brief", 1, TAIL);
        Thread.sleep(2100);
        check("get after its time", client.get("brief"), null);
        client.flush();
        check("flush", client.get("flushed"), null);
        check("flush, large", client.get("flushed:large"), null);
        check("add after flush", client.add("flushed", TAIL), true);
    }

    /** Values of several MiB, for a server that takes them. */
    private void large() throws Exception {
        for (int size : LARGE_SIZES) {
            check("set " + size, client.set("get:" + size, Client.HOUR, valueOf(size)), true);
            check("set " + size, client.set("append:" + size, Client.HOUR, valueOf(size - 100)), true);
        }
        ask("settle");
        for (int size : LARGE_SIZES) {
            check("get " + size, client.get("get:" + size), valueOf(size));
            check("append " + size, client.append("append:" + size, TAIL), true);
            check("append " + size + ", value", client.get("append:" + size), joined(valueOf(size - 100), TAIL));
        }
        List<String> keys = Arrays.stream(LARGE_SIZES).mapToObj(size -> "get:" + size).toList();
        check("get of all", client.getAll(keys).size(), LARGE_SIZES.length);
    }

    private static boolean can(Act act) {
        try {
            return act.succeeds();
        } catch (Exception fault) {
            return false;
        }
    }

    private interface Act {
        boolean succeeds() throws Exception;
    }

    /** Writes whether this user could set app:k, get app:k and set other. */
    private void login() {
        List<Act> acts = List.of(
            () -> client.set("app:k", Client.HOUR, TAIL),
            () -> Arrays.equals(client.get("app:k"), TAIL),
            () -> client.set("other", Client.HOUR, TAIL));
        acts.forEach(act -> out.println(can(act) ? "yes" : "no"));
    }

    /** CLIENT PROTOCOL SCRIPT [USER PASSWORD] HOST PORT. */
    public static void main(String[] words) throws Exception {
        // Both clients write to their log what they do.
        LogManager.getLogManager().reset();
        PrintStream out = System.out;
        System.setOut(System.err);
        int end = words.length;
        InetSocketAddress server = new InetSocketAddress(words[end - 2], Integer.parseInt(words[end - 1]));
        boolean isBinary = words[1].equals("binary"), isLogin = words[2].equals("login");
        String user = isLogin ? words[3] : null, password = isLogin ? words[4] : null;
        Client client = words[0].equals("spymemcached")
            ? new Spy(server, isBinary, user, password) : new X(server, isBinary);
        Script script = new Script(client, isBinary, new PrintStream(out, true, StandardCharsets.UTF_8));
        switch (words[2]) {
            case "whole" -> {
                Map<Integer, Long> uniques = script.prepare();
                script.ask("settle");
                script.act(uniques);
            }
            case "large" -> script.large();
            case "login" -> script.login();
            default -> throw new IllegalArgumentException(words[2]);
        }
        client.close();
        System.exit(0);
    }
}
