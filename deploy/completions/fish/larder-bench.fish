# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_larder_bench_global_optspecs
    string join \n h/help V/version
end

function __fish_larder_bench_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_larder_bench_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_larder_bench_using_subcommand
    set -l cmd (__fish_larder_bench_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c larder-bench -n "__fish_larder_bench_needs_command" -s h -l help -d 'Print help'
complete -c larder-bench -n "__fish_larder_bench_needs_command" -s V -l version -d 'Print version'
complete -c larder-bench -n "__fish_larder_bench_needs_command" -f -a "run" -d 'Measure one workload against one server'
complete -c larder-bench -n "__fish_larder_bench_needs_command" -f -a "scenario" -d 'Make published benchmarks again, their figures beside ours'
complete -c larder-bench -n "__fish_larder_bench_needs_command" -f -a "tier" -d 'Measure what a cache in two tiers gains in front of a server'
complete -c larder-bench -n "__fish_larder_bench_needs_command" -f -a "fleet" -d 'Look the hosts of a fleet over, without any load'
complete -c larder-bench -n "__fish_larder_bench_needs_command" -f -a "agent" -d 'One host\'s part of a fleet\'s run'
complete -c larder-bench -n "__fish_larder_bench_needs_command" -f -a "sweep" -d 'Measure latency against throughput'
complete -c larder-bench -n "__fish_larder_bench_needs_command" -f -a "counter" -d 'Increment one counter from many threads, and prove that every store did it right'
complete -c larder-bench -n "__fish_larder_bench_needs_command" -f -a "calibrate" -d 'Find the highest rate of this generator, against a server that does nothing'
complete -c larder-bench -n "__fish_larder_bench_needs_command" -f -a "ab" -d 'Measure two servers under one load, in turns, and compare them'
complete -c larder-bench -n "__fish_larder_bench_needs_command" -f -a "compare" -d 'Compare two results, pair by pair, with 95 % intervals'
complete -c larder-bench -n "__fish_larder_bench_needs_command" -f -a "report" -d 'Make a page, Markdown, CSV and HDR logs of results'
complete -c larder-bench -n "__fish_larder_bench_needs_command" -f -a "replay" -d 'Replay a trace of requests against a server'
complete -c larder-bench -n "__fish_larder_bench_needs_command" -f -a "trace" -d 'Count what LRU and a cache that knows the future would miss of a trace'
complete -c larder-bench -n "__fish_larder_bench_needs_command" -f -a "workload" -d 'List the published workloads, or make a trace of one'
complete -c larder-bench -n "__fish_larder_bench_needs_command" -f -a "null-server" -d 'Serve a fixed reply to whatever is asked, at once or at a fixed pace'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -s s -l server -d 'The server: HOST[:PORT], [IPV6]:PORT, unix:PATH or redis://HOST[:PORT]; several, with commas between, share the keys' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l placement -d 'How several servers share the keys: ketama, ketama-unweighted (libmemcached\'s), twemproxy or rendezvous (pymemcache\'s)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -s p -l port -d 'Its port, unless the address has one [default: 11211, redis 6379]' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -s P -l protocol -d 'text, meta, binary (memcached\'s) or resp2 (redis)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l auth-file -d 'A file whose first line is USER:PASSWORD, for a server that asks for a login (redis takes :PASSWORD too)' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l tls-ca -l cacert -d 'Trust these certificates (PEM) [default: those that this host trusts]' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l tls-cert -l cert -d 'Our own certificate (PEM), for a server that asks for one' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l tls-key -l key -d 'Its private key (PEM)' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l tls-server-name -l sni -d 'The name that the server\'s certificate is for [default: the address\'s]' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -s t -l threads -d 'Threads, each with an event loop of its own' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -s c -l connections -d 'Connections: the total over all threads' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l clients-per-thread -d 'Connections of each thread, as memtier counts them' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l pipeline -d 'Requests in flight on a connection, in a closed loop' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -s R -l rate -d 'Open loop: requests a second over all connections, such as 50k' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l arrival -d 'Open loop: const, poisson or burst:N' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l max-in-flight -d 'Open loop: requests in flight on a thread at most' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l when-full -d 'Open loop: the fate of a due request while that many are in flight: wait (it counts from when it was due) or drop (it is counted)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l reconnect -l reconnect-interval -d 'Replace a connection by a new one after N requests on it; the new one counts as a `connect`' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -s d -l duration -l test-time -d 'How long to measure, such as 10s or 2m [default: 10s, without end with -n]' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l warmup -d 'Load without measuring before' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -s n -l requests -d 'End after this many requests' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l cpus -d 'CPUs to pin the threads to, such as 1 or 2,3' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -s k -l keys -d 'How many keys' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l preset -d 'A workload of YCSB: ycsb-a, ycsb-b, ycsb-c or ycsb-d, with its verbs, key pattern and values of 1000 bytes' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l key-pattern -d 'uniform, zipf:EXP, gauss, seq, latest or hot:SHARE/WEIGHT (hot:20/80)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l key-prefix -d 'The beginning of every key' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l key-size -d 'Bytes of a key, with its prefix [default: as many as needed]' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l value-size -d 'BYTES, uFROM,TO, list:SIZE:WEIGHT,... or file:CSV (size,weight)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l expiry-range -d 'Seconds that values live: N or FROM-TO' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l mix -d 'Verbs by weight, such as get=90,set=10 (incr, delete, touch, gat, cas, append, prepend), or connect=1: new connections alone' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l ratio -d 'SETS:GETS, in memtier\'s order' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l multi-key-get -d 'Keys in one get' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l noreply -d 'Sets in a row of which only the last is answered (noreply, quiet); all are read back at the end' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l seed -d 'Where the random streams begin (each connection has its own)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l verify -d 'Which values to verify: off, sample (1 in 64) or full' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l server-pid -d 'The server\'s process: a number, auto (a local server\'s) or none' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l iostat -d 'A block device to watch: a name such as vda, or a path on it' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l hosts -d 'Load from these hosts at once: USER@HOST:PORT,HOST,... A host `local` is this one; HOST*3 takes one three times. -c, -R and -n are totals over all hosts, -t is each host\'s' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l hosts-file -d 'The same from a file, one or several a line, # begins a comment' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l ssh -d 'The command that leads to a shell on a host. {host} in it stands for the host, as in \'ip netns exec {host}\' or \'docker exec -i {host}\'; {port} for its port; without {host}, it is appended as ssh wants it' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l remote -d 'Where larder-bench is on the hosts [default: this program is copied to a private folder in their $TMPDIR or /tmp, once]' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l server-ssh -d 'Watch the server\'s process and device on this host, by --ssh (--server-pid and --iostat are that host\'s then)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l ceiling -d 'The generator\'s ceiling in requests a second, when it is known already' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l repeat -d 'Measure so many times; each keeps a result of its own, `LABEL #1`, `LABEL #2`' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l label -d 'The name of the run in results, by which `compare` finds its partner [default: the server and the load]' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l json -l json-out-file -d 'Write the result to a file' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l tls -d 'Speak TLS with the server'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l tls-skip-verify -l insecure -d 'Take any certificate of the server; the result says so'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l spin -d 'Wait for the next request\'s time by asking the clock: exact, and a whole CPU'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l look-aside -d 'Store a key that a get missed'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l prefill -d 'Store every key once before'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l expect-misses -d 'It is right that nearly every get misses'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -l no-calibrate -d 'Leave out the second that finds the generator\'s ceiling'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -s q -l quiet -d 'Say nothing but errors while it runs'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand run" -s h -l help -d 'Print help'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and not __fish_seen_subcommand_from list show run" -s h -l help -d 'Print help'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and not __fish_seen_subcommand_from list show run" -f -a "list" -d 'Name the scenarios'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and not __fish_seen_subcommand_from list show run" -f -a "show" -d 'Describe one, with the document\'s figures'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and not __fish_seen_subcommand_from list show run" -f -a "run" -d 'Run one, several or all'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and __fish_seen_subcommand_from run" -l budget -d 'How long all of them together may take, about' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and __fish_seen_subcommand_from run" -l larder -d 'Larder\'s program [default: next to this one, else in PATH]' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and __fish_seen_subcommand_from run" -l peers -d 'Peers to compare it with: memcached, redis or none [default: all that are installed]' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and __fish_seen_subcommand_from run" -l peer -d 'A server that runs already, as one more row of php-loop, memtier-sweep and counter-shootout, such as fatcache=127.0.0.1:11211; may be given several times' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and __fish_seen_subcommand_from run" -l per-thread -d 'Numbers of connections a thread for memtier-sweep, such as 1:40:1 or 1,8,40' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and __fish_seen_subcommand_from run" -l threads -d 'Numbers of threads that increment, for counter-shootout: 1-10, or 1,2,4' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and __fish_seen_subcommand_from run" -l server-threads -d 'Numbers of threads of a server, for memtier-sweep, such as 1,2,4' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and __fish_seen_subcommand_from run" -l processes -d 'Numbers of server processes of one thread that share the keys, for memtier-sweep, such as 1,2,4' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and __fish_seen_subcommand_from run" -l hosts -d 'Load from these hosts at once: USER@HOST:PORT,HOST,... A host `local` is this one; HOST*3 takes one three times. -c, -R and -n are totals over all hosts, -t is each host\'s' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and __fish_seen_subcommand_from run" -l hosts-file -d 'The same from a file, one or several a line, # begins a comment' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and __fish_seen_subcommand_from run" -l ssh -d 'The command that leads to a shell on a host. {host} in it stands for the host, as in \'ip netns exec {host}\' or \'docker exec -i {host}\'; {port} for its port; without {host}, it is appended as ssh wants it' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and __fish_seen_subcommand_from run" -l remote -d 'Where larder-bench is on the hosts [default: this program is copied to a private folder in their $TMPDIR or /tmp, once]' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and __fish_seen_subcommand_from run" -l listen -d 'With --hosts: this machine\'s address at which servers are started for them' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and __fish_seen_subcommand_from run" -l mongodb -d 'A MongoDB for counter-shootout [default: a server in memory that speaks its wire, if Maven can fetch it]' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and __fish_seen_subcommand_from run" -l server -d 'A server that runs already: HOST, HOST:PORT or unix:PATH. The remote one of perl-tiers; one more row of each other scenario' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and __fish_seen_subcommand_from run" -l near -d 'A local server that runs already, for the rows with one: HOST, HOST:PORT or unix:PATH' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and __fish_seen_subcommand_from run" -l sizes -d 'Bytes of the values, such as 28579,100,4k; the first is reported in full' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and __fish_seen_subcommand_from run" -l value -d 'A file with the value' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and __fish_seen_subcommand_from run" -l count -d 'Iterations of a loop, in all rounds together [default: 50k]; items of php-loop, keys of memtier-sweep and of each server of fatcache-ssd, increments of counter-shootout at each number of threads' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and __fish_seen_subcommand_from run" -l distances -d 'Times to add to a round trip to the remote server [default: 0,0.5ms,2ms]' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and __fish_seen_subcommand_from run" -l driver -d 'The program of Larder\'s client [default: examples/tier_loops beside this one]' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and __fish_seen_subcommand_from run" -l python -d 'A Python that has the modules to measure [default: python3]' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and __fish_seen_subcommand_from run" -l folder -d 'Where servers may keep their files [default: $TMPDIR or /tmp]' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and __fish_seen_subcommand_from run" -s o -l output -d 'Write the report into this folder: a page, Markdown, CSV, JSON' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and __fish_seen_subcommand_from run" -l json -d 'Write the result to a file' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and __fish_seen_subcommand_from run" -l as-seed -d 'Keep the document\'s flaws where that means something'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and __fish_seen_subcommand_from run" -s q -l quiet -d 'Say nothing but errors while it runs'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand scenario; and __fish_seen_subcommand_from run" -s h -l help -d 'Print help'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand tier" -s s -l server -d 'The server: HOST, HOST:PORT or unix:PATH. One item is stored in it, for an hour' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand tier" -l near -d 'A local server that runs already, for the rows with one: HOST, HOST:PORT or unix:PATH' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand tier" -l sizes -d 'Bytes of the values, such as 28579,100,4k; the first is reported in full' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand tier" -l value -d 'A file with the value' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand tier" -l count -d 'Iterations of a loop, in all rounds together [default: 50k]; items of php-loop, keys of memtier-sweep and of each server of fatcache-ssd, increments of counter-shootout at each number of threads' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand tier" -l distances -d 'Times to add to a round trip to the remote server [default: 0,0.5ms,2ms]' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand tier" -l driver -d 'The program of Larder\'s client [default: examples/tier_loops beside this one]' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand tier" -l python -d 'A Python that has the modules to measure [default: python3]' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand tier" -l budget -d 'How long all loops together may take, about' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand tier" -l folder -d 'Where servers may keep their files [default: $TMPDIR or /tmp]' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand tier" -s o -l output -d 'Write the report into this folder: a page, Markdown, CSV, JSON' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand tier" -l json -d 'Write the result to a file' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand tier" -s q -l quiet -d 'Say nothing but errors while it runs'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand tier" -s h -l help -d 'Print help'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand fleet" -l hosts -d 'Load from these hosts at once: USER@HOST:PORT,HOST,... A host `local` is this one; HOST*3 takes one three times. -c, -R and -n are totals over all hosts, -t is each host\'s' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand fleet" -l hosts-file -d 'The same from a file, one or several a line, # begins a comment' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand fleet" -l ssh -d 'The command that leads to a shell on a host. {host} in it stands for the host, as in \'ip netns exec {host}\' or \'docker exec -i {host}\'; {port} for its port; without {host}, it is appended as ssh wants it' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand fleet" -l remote -d 'Where larder-bench is on the hosts [default: this program is copied to a private folder in their $TMPDIR or /tmp, once]' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand fleet" -l server-ssh -d 'Watch the server\'s process and device on this host, by --ssh (--server-pid and --iostat are that host\'s then)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand fleet" -l samples -d 'Made-up latencies that each host records' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand fleet" -s h -l help -d 'Print help'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand agent" -s h -l help -d 'Print help'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -s s -l server -d 'The server: HOST[:PORT], [IPV6]:PORT, unix:PATH or redis://HOST[:PORT]; several, with commas between, share the keys' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l placement -d 'How several servers share the keys: ketama, ketama-unweighted (libmemcached\'s), twemproxy or rendezvous (pymemcache\'s)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -s p -l port -d 'Its port, unless the address has one [default: 11211, redis 6379]' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -s P -l protocol -d 'text, meta, binary (memcached\'s) or resp2 (redis)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l auth-file -d 'A file whose first line is USER:PASSWORD, for a server that asks for a login (redis takes :PASSWORD too)' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l tls-ca -l cacert -d 'Trust these certificates (PEM) [default: those that this host trusts]' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l tls-cert -l cert -d 'Our own certificate (PEM), for a server that asks for one' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l tls-key -l key -d 'Its private key (PEM)' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l tls-server-name -l sni -d 'The name that the server\'s certificate is for [default: the address\'s]' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -s t -l threads -d 'Threads, each with an event loop of its own' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -s c -l connections -d 'Connections: the total over all threads' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l clients-per-thread -d 'Connections of each thread, as memtier counts them' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l pipeline -d 'Requests in flight on a connection, in a closed loop' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -s R -l rate -d 'Open loop: requests a second over all connections, such as 50k' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l arrival -d 'Open loop: const, poisson or burst:N' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l max-in-flight -d 'Open loop: requests in flight on a thread at most' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l when-full -d 'Open loop: the fate of a due request while that many are in flight: wait (it counts from when it was due) or drop (it is counted)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l reconnect -l reconnect-interval -d 'Replace a connection by a new one after N requests on it; the new one counts as a `connect`' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -s d -l duration -l test-time -d 'How long to measure, such as 10s or 2m [default: 10s, without end with -n]' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l warmup -d 'Load without measuring before' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -s n -l requests -d 'End after this many requests' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l cpus -d 'CPUs to pin the threads to, such as 1 or 2,3' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -s k -l keys -d 'How many keys' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l preset -d 'A workload of YCSB: ycsb-a, ycsb-b, ycsb-c or ycsb-d, with its verbs, key pattern and values of 1000 bytes' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l key-pattern -d 'uniform, zipf:EXP, gauss, seq, latest or hot:SHARE/WEIGHT (hot:20/80)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l key-prefix -d 'The beginning of every key' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l key-size -d 'Bytes of a key, with its prefix [default: as many as needed]' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l value-size -d 'BYTES, uFROM,TO, list:SIZE:WEIGHT,... or file:CSV (size,weight)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l expiry-range -d 'Seconds that values live: N or FROM-TO' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l mix -d 'Verbs by weight, such as get=90,set=10 (incr, delete, touch, gat, cas, append, prepend), or connect=1: new connections alone' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l ratio -d 'SETS:GETS, in memtier\'s order' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l multi-key-get -d 'Keys in one get' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l noreply -d 'Sets in a row of which only the last is answered (noreply, quiet); all are read back at the end' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l seed -d 'Where the random streams begin (each connection has its own)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l verify -d 'Which values to verify: off, sample (1 in 64) or full' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l server-pid -d 'The server\'s process: a number, auto (a local server\'s) or none' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l iostat -d 'A block device to watch: a name such as vda, or a path on it' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l hosts -d 'Load from these hosts at once: USER@HOST:PORT,HOST,... A host `local` is this one; HOST*3 takes one three times. -c, -R and -n are totals over all hosts, -t is each host\'s' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l hosts-file -d 'The same from a file, one or several a line, # begins a comment' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l ssh -d 'The command that leads to a shell on a host. {host} in it stands for the host, as in \'ip netns exec {host}\' or \'docker exec -i {host}\'; {port} for its port; without {host}, it is appended as ssh wants it' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l remote -d 'Where larder-bench is on the hosts [default: this program is copied to a private folder in their $TMPDIR or /tmp, once]' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l server-ssh -d 'Watch the server\'s process and device on this host, by --ssh (--server-pid and --iostat are that host\'s then)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l rates -d 'Rates to offer: 10k,20k or 10k:100k:10k or 10k:160k:x2' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l scan-connections -d 'Totals of connections to try in a closed loop, likewise' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l slo -d 'A service level, such as p99<1ms or mean<1ms' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l need -d 'Exit with status 3 if the capacity may be below this rate' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l budget -d 'The time that a search may take' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l repeat -d 'How often each point is measured' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l json -l json-out-file -d 'Write the result to a file' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -s o -l output -d 'Write the report and its data to a folder' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l tls -d 'Speak TLS with the server'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l tls-skip-verify -l insecure -d 'Take any certificate of the server; the result says so'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l spin -d 'Wait for the next request\'s time by asking the clock: exact, and a whole CPU'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l look-aside -d 'Store a key that a get missed'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l prefill -d 'Store every key once before'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l expect-misses -d 'It is right that nearly every get misses'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -l search -d 'Search for the highest rate within --slo, within --budget'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -s q -l quiet -d 'Say nothing but errors while it runs'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand sweep" -s h -l help -d 'Print help'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand counter" -l store -d 'A store, and where it is; may be given several times. Another name for the row goes before: valkey:redis=127.0.0.1:6379' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand counter" -s t -l threads -d 'Numbers of threads: 1-10, or 1,2,4' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand counter" -s d -l duration -d 'How long each store is measured at a number of threads' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand counter" -s n -l count -d 'End each measurement after this many increments of all threads together, if that is sooner' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand counter" -l repeat -d 'How often; the table shows the median' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand counter" -l sql -d 'How databases increment: idiomatic, or as-seed (as in 2015)' -r -f -a "idiomatic\t'One statement that the database has for it'
as-seed\t'The statements of the document of 2015'"
complete -c larder-bench -n "__fish_larder_bench_using_subcommand counter" -l timeout -d 'How long to wait for an answer before it counts as lost' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand counter" -l json -d 'Write the result to a file' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand counter" -l self-check -d 'Judge made-up histories of N increments, half with a lost update' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand counter" -l no-calibrate -d 'Leave out the measurement of what the threads can do at most'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand counter" -s q -l quiet -d 'No progress'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand counter" -l list -d 'Name the stores, with their exact statements'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand counter" -s h -l help -d 'Print help'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -s s -l server -d 'The server: HOST[:PORT], [IPV6]:PORT, unix:PATH or redis://HOST[:PORT]; several, with commas between, share the keys' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l placement -d 'How several servers share the keys: ketama, ketama-unweighted (libmemcached\'s), twemproxy or rendezvous (pymemcache\'s)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -s p -l port -d 'Its port, unless the address has one [default: 11211, redis 6379]' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -s P -l protocol -d 'text, meta, binary (memcached\'s) or resp2 (redis)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l auth-file -d 'A file whose first line is USER:PASSWORD, for a server that asks for a login (redis takes :PASSWORD too)' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l tls-ca -l cacert -d 'Trust these certificates (PEM) [default: those that this host trusts]' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l tls-cert -l cert -d 'Our own certificate (PEM), for a server that asks for one' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l tls-key -l key -d 'Its private key (PEM)' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l tls-server-name -l sni -d 'The name that the server\'s certificate is for [default: the address\'s]' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -s t -l threads -d 'Threads, each with an event loop of its own' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -s c -l connections -d 'Connections: the total over all threads' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l clients-per-thread -d 'Connections of each thread, as memtier counts them' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l pipeline -d 'Requests in flight on a connection, in a closed loop' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -s R -l rate -d 'Open loop: requests a second over all connections, such as 50k' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l arrival -d 'Open loop: const, poisson or burst:N' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l max-in-flight -d 'Open loop: requests in flight on a thread at most' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l when-full -d 'Open loop: the fate of a due request while that many are in flight: wait (it counts from when it was due) or drop (it is counted)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l reconnect -l reconnect-interval -d 'Replace a connection by a new one after N requests on it; the new one counts as a `connect`' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -s d -l duration -l test-time -d 'How long to measure, such as 10s or 2m [default: 10s, without end with -n]' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l warmup -d 'Load without measuring before' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -s n -l requests -d 'End after this many requests' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l cpus -d 'CPUs to pin the threads to, such as 1 or 2,3' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -s k -l keys -d 'How many keys' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l preset -d 'A workload of YCSB: ycsb-a, ycsb-b, ycsb-c or ycsb-d, with its verbs, key pattern and values of 1000 bytes' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l key-pattern -d 'uniform, zipf:EXP, gauss, seq, latest or hot:SHARE/WEIGHT (hot:20/80)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l key-prefix -d 'The beginning of every key' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l key-size -d 'Bytes of a key, with its prefix [default: as many as needed]' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l value-size -d 'BYTES, uFROM,TO, list:SIZE:WEIGHT,... or file:CSV (size,weight)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l expiry-range -d 'Seconds that values live: N or FROM-TO' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l mix -d 'Verbs by weight, such as get=90,set=10 (incr, delete, touch, gat, cas, append, prepend), or connect=1: new connections alone' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l ratio -d 'SETS:GETS, in memtier\'s order' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l multi-key-get -d 'Keys in one get' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l noreply -d 'Sets in a row of which only the last is answered (noreply, quiet); all are read back at the end' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l seed -d 'Where the random streams begin (each connection has its own)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l verify -d 'Which values to verify: off, sample (1 in 64) or full' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l server-pid -d 'The server\'s process: a number, auto (a local server\'s) or none' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l iostat -d 'A block device to watch: a name such as vda, or a path on it' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l json -d 'Write the three runs to a file' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l tls -d 'Speak TLS with the server'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l tls-skip-verify -l insecure -d 'Take any certificate of the server; the result says so'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l spin -d 'Wait for the next request\'s time by asking the clock: exact, and a whole CPU'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l look-aside -d 'Store a key that a get missed'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l prefill -d 'Store every key once before'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -l expect-misses -d 'It is right that nearly every get misses'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand calibrate" -s h -l help -d 'Print help'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l pairs -d 'How many pairs of runs' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l fail-if -d 'End with status 3 when a figure changed by more than this: `p99>+5%`, `rate<-3%`. The change must also be clear: its 95 % interval does not hold 0' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l placement -d 'How several servers share the keys: ketama, ketama-unweighted (libmemcached\'s), twemproxy or rendezvous (pymemcache\'s)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -s p -l port -d 'Its port, unless the address has one [default: 11211, redis 6379]' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -s P -l protocol -d 'text, meta, binary (memcached\'s) or resp2 (redis)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l auth-file -d 'A file whose first line is USER:PASSWORD, for a server that asks for a login (redis takes :PASSWORD too)' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l tls-ca -l cacert -d 'Trust these certificates (PEM) [default: those that this host trusts]' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l tls-cert -l cert -d 'Our own certificate (PEM), for a server that asks for one' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l tls-key -l key -d 'Its private key (PEM)' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l tls-server-name -l sni -d 'The name that the server\'s certificate is for [default: the address\'s]' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -s t -l threads -d 'Threads, each with an event loop of its own' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -s c -l connections -d 'Connections: the total over all threads' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l clients-per-thread -d 'Connections of each thread, as memtier counts them' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l pipeline -d 'Requests in flight on a connection, in a closed loop' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -s R -l rate -d 'Open loop: requests a second over all connections, such as 50k' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l arrival -d 'Open loop: const, poisson or burst:N' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l max-in-flight -d 'Open loop: requests in flight on a thread at most' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l when-full -d 'Open loop: the fate of a due request while that many are in flight: wait (it counts from when it was due) or drop (it is counted)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l reconnect -l reconnect-interval -d 'Replace a connection by a new one after N requests on it; the new one counts as a `connect`' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -s d -l duration -l test-time -d 'How long to measure, such as 10s or 2m [default: 10s, without end with -n]' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l warmup -d 'Load without measuring before' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -s n -l requests -d 'End after this many requests' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l cpus -d 'CPUs to pin the threads to, such as 1 or 2,3' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -s k -l keys -d 'How many keys' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l preset -d 'A workload of YCSB: ycsb-a, ycsb-b, ycsb-c or ycsb-d, with its verbs, key pattern and values of 1000 bytes' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l key-pattern -d 'uniform, zipf:EXP, gauss, seq, latest or hot:SHARE/WEIGHT (hot:20/80)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l key-prefix -d 'The beginning of every key' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l key-size -d 'Bytes of a key, with its prefix [default: as many as needed]' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l value-size -d 'BYTES, uFROM,TO, list:SIZE:WEIGHT,... or file:CSV (size,weight)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l expiry-range -d 'Seconds that values live: N or FROM-TO' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l mix -d 'Verbs by weight, such as get=90,set=10 (incr, delete, touch, gat, cas, append, prepend), or connect=1: new connections alone' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l ratio -d 'SETS:GETS, in memtier\'s order' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l multi-key-get -d 'Keys in one get' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l noreply -d 'Sets in a row of which only the last is answered (noreply, quiet); all are read back at the end' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l seed -d 'Where the random streams begin (each connection has its own)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l verify -d 'Which values to verify: off, sample (1 in 64) or full' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l server-pid -d 'The server\'s process: a number, auto (a local server\'s) or none' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l iostat -d 'A block device to watch: a name such as vda, or a path on it' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l json -l json-out-file -d 'Write the result to a file' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -s s -l server -d 'The server: HOST[:PORT], [IPV6]:PORT, unix:PATH or redis://HOST[:PORT]; several, with commas between, share the keys' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l allow-uncertified -d 'Compare runs that were not certified, which otherwise ends with status 5'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l tls -d 'Speak TLS with the server'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l tls-skip-verify -l insecure -d 'Take any certificate of the server; the result says so'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l spin -d 'Wait for the next request\'s time by asking the clock: exact, and a whole CPU'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l look-aside -d 'Store a key that a get missed'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l prefill -d 'Store every key once before'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l expect-misses -d 'It is right that nearly every get misses'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -l no-calibrate -d 'Leave out the second that finds the generator\'s ceiling'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -s q -l quiet -d 'Say nothing but the comparison'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand ab" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand compare" -l fail-if -d 'End with status 3 when a figure changed by more than this: `p99>+5%`, `rate<-3%`. The change must also be clear: its 95 % interval does not hold 0' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand compare" -l allow-uncertified -d 'Compare runs that were not certified, which otherwise ends with status 5'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand compare" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand report" -s o -l output -d 'Write report.html, report.md, result.json, timeseries.csv and latency.hlog into this folder' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand report" -l html -d 'Write the page to this file; - is the standard output' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand report" -l markdown -d 'Write Markdown to this file; - is the standard output' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand report" -l title -d 'The title of the page, instead of the results\' own' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand report" -s h -l help -d 'Print help'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l speed -d 'How fast: 1x as recorded, 10x ten times as fast, or max in a closed loop' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l first -d 'Only this many requests from the trace\'s beginning' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -s s -l server -d 'The server: HOST[:PORT], [IPV6]:PORT, unix:PATH or redis://HOST[:PORT]; several, with commas between, share the keys' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l placement -d 'How several servers share the keys: ketama, ketama-unweighted (libmemcached\'s), twemproxy or rendezvous (pymemcache\'s)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -s p -l port -d 'Its port, unless the address has one [default: 11211, redis 6379]' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -s P -l protocol -d 'text, meta, binary (memcached\'s) or resp2 (redis)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l auth-file -d 'A file whose first line is USER:PASSWORD, for a server that asks for a login (redis takes :PASSWORD too)' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l tls-ca -l cacert -d 'Trust these certificates (PEM) [default: those that this host trusts]' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l tls-cert -l cert -d 'Our own certificate (PEM), for a server that asks for one' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l tls-key -l key -d 'Its private key (PEM)' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l tls-server-name -l sni -d 'The name that the server\'s certificate is for [default: the address\'s]' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -s t -l threads -d 'Threads, each with an event loop of its own' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -s c -l connections -d 'Connections: the total over all threads' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l clients-per-thread -d 'Connections of each thread, as memtier counts them' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l pipeline -d 'Requests in flight on a connection, in a closed loop' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -s R -l rate -d 'Open loop: requests a second over all connections, such as 50k' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l arrival -d 'Open loop: const, poisson or burst:N' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l max-in-flight -d 'Open loop: requests in flight on a thread at most' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l when-full -d 'Open loop: the fate of a due request while that many are in flight: wait (it counts from when it was due) or drop (it is counted)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l reconnect -l reconnect-interval -d 'Replace a connection by a new one after N requests on it; the new one counts as a `connect`' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -s d -l duration -l test-time -d 'How long to measure, such as 10s or 2m [default: 10s, without end with -n]' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l warmup -d 'Load without measuring before' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -s n -l requests -d 'End after this many requests' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l cpus -d 'CPUs to pin the threads to, such as 1 or 2,3' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -s k -l keys -d 'How many keys' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l preset -d 'A workload of YCSB: ycsb-a, ycsb-b, ycsb-c or ycsb-d, with its verbs, key pattern and values of 1000 bytes' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l key-pattern -d 'uniform, zipf:EXP, gauss, seq, latest or hot:SHARE/WEIGHT (hot:20/80)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l key-prefix -d 'The beginning of every key' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l key-size -d 'Bytes of a key, with its prefix [default: as many as needed]' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l value-size -d 'BYTES, uFROM,TO, list:SIZE:WEIGHT,... or file:CSV (size,weight)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l expiry-range -d 'Seconds that values live: N or FROM-TO' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l mix -d 'Verbs by weight, such as get=90,set=10 (incr, delete, touch, gat, cas, append, prepend), or connect=1: new connections alone' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l ratio -d 'SETS:GETS, in memtier\'s order' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l multi-key-get -d 'Keys in one get' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l noreply -d 'Sets in a row of which only the last is answered (noreply, quiet); all are read back at the end' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l seed -d 'Where the random streams begin (each connection has its own)' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l verify -d 'Which values to verify: off, sample (1 in 64) or full' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l server-pid -d 'The server\'s process: a number, auto (a local server\'s) or none' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l iostat -d 'A block device to watch: a name such as vda, or a path on it' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l json -l json-out-file -d 'Write the result to a file' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l tls -d 'Speak TLS with the server'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l tls-skip-verify -l insecure -d 'Take any certificate of the server; the result says so'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l spin -d 'Wait for the next request\'s time by asking the clock: exact, and a whole CPU'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l look-aside -d 'Store a key that a get missed'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l prefill -d 'Store every key once before'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -l expect-misses -d 'It is right that nearly every get misses'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -s q -l quiet -d 'Say nothing but errors while it runs'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand replay" -s h -l help -d 'Print help'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand trace" -l sizes -d 'Sizes of the cache, such as 64m,1g [default: the bytes of all items, and halves of it]' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand trace" -l sample -d 'The share of the items from which LRU\'s misses are worked out; 1 is exact and slow' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand trace" -l first -d 'Only this many requests from the trace\'s beginning' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand trace" -l seed -d 'Where made-up times within a second begin, as in `replay`' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand trace" -l json -d 'Write the figures to a file' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand trace" -s h -l help -d 'Print help'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand workload" -s n -l requests -d 'How many requests, such as 500k or 1m' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand workload" -l scale -d 'Share of the cluster\'s rate (Twitter) or keys (Meta); the live data scales with it' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand workload" -l faster -d 'Divide times and expiries by this, so that a day of the cluster passes in minutes; expiries stay whole seconds, and one at least' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand workload" -l seed -d 'Decides the stream: the same seed makes the same requests' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand workload" -s o -l output -d 'Write the trace to this file, in the form that replay reads fastest' -r -F
complete -c larder-bench -n "__fish_larder_bench_using_subcommand workload" -s h -l help -d 'Print help'
complete -c larder-bench -n "__fish_larder_bench_using_subcommand null-server" -s p -l port -d 'Port on 127.0.0.1; 0 lets the system pick one' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand null-server" -s P -l protocol -d 'text, meta, binary or resp2' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand null-server" -l value-bytes -d 'How large every value is' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand null-server" -l service-time -d 'How long each thread takes for a request, such as 20us; it spins, and is a whole CPU' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand null-server" -l threads -d 'Threads' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand null-server" -l cpus -d 'CPUs for the threads, in turn' -r
complete -c larder-bench -n "__fish_larder_bench_using_subcommand null-server" -s h -l help -d 'Print help'
