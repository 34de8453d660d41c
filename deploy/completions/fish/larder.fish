# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_larder_global_optspecs
    string join \n ssd= ssd-share= ssd-format ssd-write-limit= ssd-endurance= ssd-write-wait= ssd-admission= ssd-live-percent= index-memory= shadow-memory= item-size= conn-memory= lease-memory= io= http= http-token-file= http-open http-host= config= print-config plan= json p/port= U/udp-port= s/unix-socket= a/unix-mask= l/listen= insecure-listen cluster-nodes= cluster-srv= cluster-dns= c/conn-limit= b/listen-backlog= B/protocol= Y/auth-file= S/enable-sasl Z/enable-ssl t/threads= R/max-reqs-per-event= m/memory-limit= I/max-item-size= M/disable-evictions e/memory-file= state-file= k/lock-memory C/disable-cas A/enable-shutdown F/disable-flush-all X/disable-dumping W/disable-watch D/prefix-delimiter= d/daemon u/user= P/pidfile= v/verbose o/extended= h/help i/license V/version r/enable-coredumps f/slab-growth-factor= n/slab-min-size= L/enable-largepages N/napi-ids=
end

function __fish_larder_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_larder_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_larder_using_subcommand
    set -l cmd (__fish_larder_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c larder -n "__fish_larder_needs_command" -l ssd -d 'keep items that do not fit in RAM in this file or block device; repeat it to stripe over several, or give none; SIZE may be left out for a device or an existing file (default: 1 GiB, or 16 times a smaller memory limit, in ~/.cache/larder/larder.ssd; none under the name memcached)' -r -F
complete -c larder -n "__fish_larder_needs_command" -l ssd-share -d 'use the I-th of N equal parts of each SSD path, so that N processes can share it (default: 1/1)' -r -f
complete -c larder -n "__fish_larder_needs_command" -l ssd-write-limit -d 'write at most this many bytes a second to the SSD, to spare it' -r -f
complete -c larder -n "__fish_larder_needs_command" -l ssd-endurance -d 'the bytes that each SSD may take over its life, from its data sheet, so T is 10^12: statistics and larder doctor then tell how many days that lasts' -r -f
complete -c larder -n "__fish_larder_needs_command" -l ssd-write-wait -d 'let a set wait at most this many milliseconds for the SSD before it drops older items instead (default: 50)' -r -f
complete -c larder -n "__fish_larder_needs_command" -l ssd-admission -d 'which items that leave RAM go to the SSD: all; returning: once it is full, only those that were read or stored again, as a write limit implies; auto: by shadows of both, the one that misses less (default: all)' -r -f -a "all\t''
returning\t''
auto\t''"
complete -c larder -n "__fish_larder_needs_command" -l ssd-live-percent -d 'keep every live item on the SSD while these take at most this many percent of it, by moving them when their segment is reused; beyond that, and always with 0, the oldest items go (default: 70)' -r -f
complete -c larder -n "__fish_larder_needs_command" -l index-memory -d 'RAM for the index at the start, out of the memory limit, a hint: from there it grows and shrinks with the number of items, but with -M (default: it follows the items; with -M, from the SSD\'s size and item-size)' -r -f
complete -c larder -n "__fish_larder_needs_command" -l shadow-memory -d 'RAM to estimate what caches of other sizes would miss, out of the memory limit: more gives surer estimates; 0 estimates nothing (default: a hundredth of the memory limit, 16m at most; none below 25m)' -r -f
complete -c larder -n "__fish_larder_needs_command" -l item-size -d 'the size of a typical item, a hint: a start tells how many of these fit; it sizes the tables of remembered keys and, where the index keeps its size, the index (default: 512)' -r -f
complete -c larder -n "__fish_larder_needs_command" -l conn-memory -d 'RAM for the buffers of all connections together, in addition to the memory limit (default: 64m)' -r -f
complete -c larder -n "__fish_larder_needs_command" -l lease-memory -d 'RAM to remember which keys the caches of clients hold and want to be told the changes of, in addition to the memory limit; taken only while a client subscribes; 0 refuses subscriptions (default: 16m)' -r -f
complete -c larder -n "__fish_larder_needs_command" -l io -d 'how to reach the SSD: uring, threads (a pool of them), or auto, whichever works here (default: auto)' -r -f -a "auto\t''
uring\t''
threads\t''"
complete -c larder -n "__fish_larder_needs_command" -l http -d 'serve metrics and figures to operators by HTTP at this HOST[:PORT], or at unix:PATH with the mask of -a; another address than loopback needs a token, or --http-open' -r -f
complete -c larder -n "__fish_larder_needs_command" -l http-token-file -d 'answer only HTTP requests with the token in this file (Authorization: Bearer TOKEN); /healthz and /readyz need none; the file is read at each request' -r -F
complete -c larder -n "__fish_larder_needs_command" -l http-host -d 'a name of this host that HTTP requests may be for; repeat it for several; addresses and localhost always are' -r -f
complete -c larder -n "__fish_larder_needs_command" -l config -d 'read options from a TOML file whose keys are the long names' -r -F
complete -c larder -n "__fish_larder_needs_command" -l plan -d 'print what RAM and SSD these items take, what is written and the command line for it, then exit: --plan \'500GB of 2KB sessions, 5m pages 30KB, ttl=24h\'; --ssd and --ssd-endurance go with it' -r -f
complete -c larder -n "__fish_larder_needs_command" -s p -l port -d 'TCP port; -1 picks a free one, 0 switches TCP off (default: 11211)' -r -f
complete -c larder -n "__fish_larder_needs_command" -s U -l udp-port -d 'accepted, but UDP is never served' -r -f
complete -c larder -n "__fish_larder_needs_command" -s s -l unix-socket -d 'listen on a Unix socket instead of TCP' -r -F
complete -c larder -n "__fish_larder_needs_command" -s a -l unix-mask -d 'access mask of the Unix socket, octal (default: 700)' -r -f
complete -c larder -n "__fish_larder_needs_command" -s l -l listen -d 'addresses to listen on, separated by commas; * is every interface, [::1]:11211 an IPv6 address with a port; notls:, btls: or mtls: in front is without TLS, with it, or with clients\' certificates too, and proto[ascii]: or proto[binary]: is a protocol of its own (default: 127.0.0.1; every interface under the name memcached)' -r -f
complete -c larder -n "__fish_larder_needs_command" -l cluster-nodes -d 'tell clients with auto-discovery, which send config get cluster, that the servers in this file share the keys: HOST:PORT or HOST:PORT ADDRESS a line; SIGHUP reads it again' -r -F
complete -c larder -n "__fish_larder_needs_command" -l cluster-srv -d 'tell clients with auto-discovery that the servers in this name\'s SRV records share the keys; they are looked up again after their time to live, 2 to 300 seconds, and on SIGHUP' -r -f
complete -c larder -n "__fish_larder_needs_command" -l cluster-dns -d 'the DNS server that --cluster-srv asks, instead of those in /etc/resolv.conf' -r -f
complete -c larder -n "__fish_larder_needs_command" -s c -l conn-limit -d 'most simultaneous connections; the limit on open files is raised to what they need, where that is allowed (default: 1024)' -r -f
complete -c larder -n "__fish_larder_needs_command" -s b -l listen-backlog -d 'length of the kernel\'s queue of connections to be accepted (default: 1024)' -r -f
complete -c larder -n "__fish_larder_needs_command" -s B -l protocol -d 'protocol of all connections: ascii, binary, or auto to tell by the first byte (default: auto)' -r -f -a "auto\t''
ascii\t''
binary\t''"
complete -c larder -n "__fish_larder_needs_command" -s Y -l auth-file -d 'let in only the users in this file, with lines of the form user:password behind sections such as [read] or [write shop%3A]; SIGHUP reads it again; binary connections need -S too' -r -F
complete -c larder -n "__fish_larder_needs_command" -s t -l threads -d 'event-loop threads (default: the cores this process may use)' -r -f
complete -c larder -n "__fish_larder_needs_command" -s R -l max-reqs-per-event -d 'requests served for one connection before the others get their turn (default: 20)' -r -f
complete -c larder -n "__fish_larder_needs_command" -s m -l memory-limit -d 'RAM for everything the store keeps: index, write buffers and the RAM tier; a number without a suffix counts megabytes (default: 64m)' -r -f
complete -c larder -n "__fish_larder_needs_command" -s I -l max-item-size -d 'largest item, from 1k to 1g and at most half the memory limit; a number without a suffix counts bytes (default: 1m, or half a smaller memory limit)' -r -f
complete -c larder -n "__fish_larder_needs_command" -s e -l memory-file -d 'keep the store\'s RAM in this file, on tmpfs: a daemon started with the same options after this one was stopped, upgraded or killed continues with all items, in RAM and on the SSD; systemd instead of a path: the service manager keeps the RAM and the sockets while the service is restarted' -r -F
complete -c larder -n "__fish_larder_needs_command" -l state-file -d 'save the store\'s RAM to this file when the daemon is told to stop, and begin with it the next time, even after the machine was started anew; not with --memory-file' -r -F
complete -c larder -n "__fish_larder_needs_command" -s D -l prefix-delimiter -d 'the character that ends a key\'s prefix in stats detail; giving it starts the counting (default: :)' -r -f
complete -c larder -n "__fish_larder_needs_command" -s u -l user -d 'become this user (only when started by root)' -r -f -a "(__fish_complete_users)"
complete -c larder -n "__fish_larder_needs_command" -s P -l pidfile -d 'write the process id to this file' -r -F
complete -c larder -n "__fish_larder_needs_command" -s o -l extended -d 'memcached\'s extended options, separated by commas; see below' -r -f
complete -c larder -n "__fish_larder_needs_command" -s f -l slab-growth-factor -d ' (default: 1.25)' -r -f
complete -c larder -n "__fish_larder_needs_command" -s n -l slab-min-size -d ' (default: 48)' -r -f
complete -c larder -n "__fish_larder_needs_command" -s N -l napi-ids -d '' -r -f
complete -c larder -n "__fish_larder_needs_command" -l ssd-format -d 'start with an empty SSD tier even if it holds other data, which is lost'
complete -c larder -n "__fish_larder_needs_command" -l http-open -d 'let every host that reaches the address of --http read it without a token'
complete -c larder -n "__fish_larder_needs_command" -l print-config -d 'print every value and where it comes from, then exit; --print-config=example prints a commented file for --config'
complete -c larder -n "__fish_larder_needs_command" -l json -d 'print the plan as JSON'
complete -c larder -n "__fish_larder_needs_command" -l insecure-listen -d 'listen on other addresses than loopback without authentication or TLS: every host that reaches the port reads and writes all items'
complete -c larder -n "__fish_larder_needs_command" -s S -l enable-sasl -d 'let the users of -Y in over the binary protocol too, by SASL PLAIN'
complete -c larder -n "__fish_larder_needs_command" -s Z -l enable-ssl -d 'speak TLS with every TCP connection, with the certificate of -o ssl_chain_cert; SIGHUP and the command refresh_certs read it again'
complete -c larder -n "__fish_larder_needs_command" -s M -l disable-evictions -d 'answer a set with an error when memory is full, instead of evicting'
complete -c larder -n "__fish_larder_needs_command" -s k -l lock-memory -d 'lock all memory, so that it is never swapped out'
complete -c larder -n "__fish_larder_needs_command" -s C -l disable-cas -d 'keep no CAS values; they read as 0'
complete -c larder -n "__fish_larder_needs_command" -s A -l enable-shutdown -d 'allow the command shutdown'
complete -c larder -n "__fish_larder_needs_command" -s F -l disable-flush-all -d 'refuse the command flush_all'
complete -c larder -n "__fish_larder_needs_command" -s X -l disable-dumping -d 'refuse stats cachedump and lru_crawler metadump'
complete -c larder -n "__fish_larder_needs_command" -s W -l disable-watch -d 'refuse the command watch'
complete -c larder -n "__fish_larder_needs_command" -s d -l daemon -d 'run in the background'
complete -c larder -n "__fish_larder_needs_command" -s v -l verbose -d 'log more on standard error; -vv shows requests and replies, without values'
complete -c larder -n "__fish_larder_needs_command" -s h -l help -d 'print this page; --help=ext prints how memcached\'s names for SSD storage are understood'
complete -c larder -n "__fish_larder_needs_command" -s i -l license -d 'print the licence'
complete -c larder -n "__fish_larder_needs_command" -s V -l version -d 'print the memcached version this is compatible with, then Larder\'s own'
complete -c larder -n "__fish_larder_needs_command" -s r -l enable-coredumps -d ''
complete -c larder -n "__fish_larder_needs_command" -s L -l enable-largepages -d ''
complete -c larder -n "__fish_larder_needs_command" -f -a "copy" -d 'Copies all items from one server to another, with values, flags and expiry'
complete -c larder -n "__fish_larder_needs_command" -f -a "dump" -d 'Writes all items of a server to a file, with values, flags and expiry'
complete -c larder -n "__fish_larder_needs_command" -f -a "restore" -d 'Stores the items of a dump on a server'
complete -c larder -n "__fish_larder_needs_command" -f -a "stat" -d 'Shows what a server does, a line for each interval'
complete -c larder -n "__fish_larder_needs_command" -f -a "top" -d 'Shows the prefixes, keys or clients that are asked for most'
complete -c larder -n "__fish_larder_needs_command" -f -a "keys" -d 'Lists the keys of a server'
complete -c larder -n "__fish_larder_needs_command" -f -a "hist" -d 'Shows the sizes, times to live and ages of a server\'s items, or the times of its requests'
complete -c larder -n "__fish_larder_needs_command" -f -a "advise" -d 'Names the size of RAM and SSD that costs the least'
complete -c larder -n "__fish_larder_needs_command" -f -a "what-if" -d 'Tries other options on the server\'s traffic, without changing it'
complete -c larder -n "__fish_larder_needs_command" -f -a "doctor" -d 'Checks a server and its host, and says what mends what it finds'
complete -c larder -n "__fish_larder_needs_command" -f -a "config" -d 'Shows the settings of a daemon, what other options would change, or has files read again'
complete -c larder -n "__fish_larder_using_subcommand copy" -l from -d 'Copy from this server: HOST[:PORT] or the path of a unix socket; tls: in front speaks TLS' -r
complete -c larder -n "__fish_larder_using_subcommand copy" -l to -d 'Copy to this server' -r
complete -c larder -n "__fish_larder_using_subcommand copy" -l verify -d 'Compare the items of both servers afterwards: all, or one key in N' -r
complete -c larder -n "__fish_larder_using_subcommand copy" -l rate -d 'Move at most this many bytes a second' -r
complete -c larder -n "__fish_larder_using_subcommand copy" -l connections -d 'Use so many connections to each server' -r
complete -c larder -n "__fish_larder_using_subcommand copy" -l from-login -d 'Log in to --from with the first line of this file, USER:PASSWORD' -r -F
complete -c larder -n "__fish_larder_using_subcommand copy" -l to-login -d 'Log in to --to with the first line of this file, USER:PASSWORD' -r -F
complete -c larder -n "__fish_larder_using_subcommand copy" -l tls-ca -d 'Verify certificates of servers with TLS by the authorities in this file, not by this host\'s' -r -F
complete -c larder -n "__fish_larder_using_subcommand copy" -l tls-cert -d 'Present the certificate in this file' -r -F
complete -c larder -n "__fish_larder_using_subcommand copy" -l tls-key -d 'The private key of that certificate' -r -F
complete -c larder -n "__fish_larder_using_subcommand copy" -l tls-name -d 'The name that servers\' certificates must have; by default the host of the address' -r
complete -c larder -n "__fish_larder_using_subcommand copy" -l timeout -d 'The longest silence of a server' -r
complete -c larder -n "__fish_larder_using_subcommand copy" -l add -d 'Keep the items that the destination already has'
complete -c larder -n "__fish_larder_using_subcommand copy" -s q -l quiet -d 'Show no progress'
complete -c larder -n "__fish_larder_using_subcommand copy" -l json -d 'Print the result as JSON'
complete -c larder -n "__fish_larder_using_subcommand copy" -l tls-unverified -d 'Accept any certificate; for tests'
complete -c larder -n "__fish_larder_using_subcommand dump" -l rate -d 'Move at most this many bytes a second' -r
complete -c larder -n "__fish_larder_using_subcommand dump" -l connections -d 'Use so many connections to each server' -r
complete -c larder -n "__fish_larder_using_subcommand dump" -s s -l server -d 'The server: HOST[:PORT] or the path of a unix socket; tls: in front speaks TLS [default: 127.0.0.1:11211]' -r
complete -c larder -n "__fish_larder_using_subcommand dump" -l login -d 'Log in with the first line of this file, USER:PASSWORD' -r -F
complete -c larder -n "__fish_larder_using_subcommand dump" -l tls-ca -d 'Verify certificates of servers with TLS by the authorities in this file, not by this host\'s' -r -F
complete -c larder -n "__fish_larder_using_subcommand dump" -l tls-cert -d 'Present the certificate in this file' -r -F
complete -c larder -n "__fish_larder_using_subcommand dump" -l tls-key -d 'The private key of that certificate' -r -F
complete -c larder -n "__fish_larder_using_subcommand dump" -l tls-name -d 'The name that servers\' certificates must have; by default the host of the address' -r
complete -c larder -n "__fish_larder_using_subcommand dump" -l timeout -d 'The longest silence of a server' -r
complete -c larder -n "__fish_larder_using_subcommand dump" -s q -l quiet -d 'Show no progress'
complete -c larder -n "__fish_larder_using_subcommand dump" -l json -d 'Print the result as JSON'
complete -c larder -n "__fish_larder_using_subcommand dump" -l tls-unverified -d 'Accept any certificate; for tests'
complete -c larder -n "__fish_larder_using_subcommand restore" -l rate -d 'Move at most this many bytes a second' -r
complete -c larder -n "__fish_larder_using_subcommand restore" -l connections -d 'Use so many connections to each server' -r
complete -c larder -n "__fish_larder_using_subcommand restore" -s s -l server -d 'The server: HOST[:PORT] or the path of a unix socket; tls: in front speaks TLS [default: 127.0.0.1:11211]' -r
complete -c larder -n "__fish_larder_using_subcommand restore" -l login -d 'Log in with the first line of this file, USER:PASSWORD' -r -F
complete -c larder -n "__fish_larder_using_subcommand restore" -l tls-ca -d 'Verify certificates of servers with TLS by the authorities in this file, not by this host\'s' -r -F
complete -c larder -n "__fish_larder_using_subcommand restore" -l tls-cert -d 'Present the certificate in this file' -r -F
complete -c larder -n "__fish_larder_using_subcommand restore" -l tls-key -d 'The private key of that certificate' -r -F
complete -c larder -n "__fish_larder_using_subcommand restore" -l tls-name -d 'The name that servers\' certificates must have; by default the host of the address' -r
complete -c larder -n "__fish_larder_using_subcommand restore" -l timeout -d 'The longest silence of a server' -r
complete -c larder -n "__fish_larder_using_subcommand restore" -l add -d 'Keep the items that the server already has'
complete -c larder -n "__fish_larder_using_subcommand restore" -l check -d 'Only check the file'
complete -c larder -n "__fish_larder_using_subcommand restore" -s q -l quiet -d 'Show no progress'
complete -c larder -n "__fish_larder_using_subcommand restore" -l json -d 'Print the result as JSON'
complete -c larder -n "__fish_larder_using_subcommand restore" -l tls-unverified -d 'Accept any certificate; for tests'
complete -c larder -n "__fish_larder_using_subcommand stat" -s i -l interval -d 'Show a line each so often' -r
complete -c larder -n "__fish_larder_using_subcommand stat" -s n -l count -d 'End after so many lines' -r
complete -c larder -n "__fish_larder_using_subcommand stat" -l http -d 'Ask over the daemon\'s --http, HOST[:PORT] or unix:PATH, instead of over its port' -r
complete -c larder -n "__fish_larder_using_subcommand stat" -l http-token-file -d 'The file with the token of its --http-token-file' -r -F
complete -c larder -n "__fish_larder_using_subcommand stat" -s s -l server -d 'The server: HOST[:PORT] or the path of a unix socket; tls: in front speaks TLS [default: 127.0.0.1:11211]' -r
complete -c larder -n "__fish_larder_using_subcommand stat" -l login -d 'Log in with the first line of this file, USER:PASSWORD' -r -F
complete -c larder -n "__fish_larder_using_subcommand stat" -l tls-ca -d 'Verify certificates of servers with TLS by the authorities in this file, not by this host\'s' -r -F
complete -c larder -n "__fish_larder_using_subcommand stat" -l tls-cert -d 'Present the certificate in this file' -r -F
complete -c larder -n "__fish_larder_using_subcommand stat" -l tls-key -d 'The private key of that certificate' -r -F
complete -c larder -n "__fish_larder_using_subcommand stat" -l tls-name -d 'The name that servers\' certificates must have; by default the host of the address' -r
complete -c larder -n "__fish_larder_using_subcommand stat" -l timeout -d 'The longest silence of a server' -r
complete -c larder -n "__fish_larder_using_subcommand stat" -l json -d 'Print each line as an object of JSON'
complete -c larder -n "__fish_larder_using_subcommand stat" -l tls-unverified -d 'Accept any certificate; for tests'
complete -c larder -n "__fish_larder_using_subcommand top" -s i -l interval -d 'Watch for so long before the next view' -r
complete -c larder -n "__fish_larder_using_subcommand top" -s c -l count -d 'End after so many views' -r
complete -c larder -n "__fish_larder_using_subcommand top" -s n -l names -d 'Show so many names' -r
complete -c larder -n "__fish_larder_using_subcommand top" -l delimiter -d 'The character that ends a prefix' -r
complete -c larder -n "__fish_larder_using_subcommand top" -l http -d 'Ask over the daemon\'s --http, HOST[:PORT] or unix:PATH, instead of over its port' -r
complete -c larder -n "__fish_larder_using_subcommand top" -l http-token-file -d 'The file with the token of its --http-token-file' -r -F
complete -c larder -n "__fish_larder_using_subcommand top" -s s -l server -d 'The server: HOST[:PORT] or the path of a unix socket; tls: in front speaks TLS [default: 127.0.0.1:11211]' -r
complete -c larder -n "__fish_larder_using_subcommand top" -l login -d 'Log in with the first line of this file, USER:PASSWORD' -r -F
complete -c larder -n "__fish_larder_using_subcommand top" -l tls-ca -d 'Verify certificates of servers with TLS by the authorities in this file, not by this host\'s' -r -F
complete -c larder -n "__fish_larder_using_subcommand top" -l tls-cert -d 'Present the certificate in this file' -r -F
complete -c larder -n "__fish_larder_using_subcommand top" -l tls-key -d 'The private key of that certificate' -r -F
complete -c larder -n "__fish_larder_using_subcommand top" -l tls-name -d 'The name that servers\' certificates must have; by default the host of the address' -r
complete -c larder -n "__fish_larder_using_subcommand top" -l timeout -d 'The longest silence of a server' -r
complete -c larder -n "__fish_larder_using_subcommand top" -l stored -d 'Count items and their bytes, not requests'
complete -c larder -n "__fish_larder_using_subcommand top" -l json -d 'Print each view as an object of JSON'
complete -c larder -n "__fish_larder_using_subcommand top" -l tls-unverified -d 'Accept any certificate; for tests'
complete -c larder -n "__fish_larder_using_subcommand keys" -s n -l limit -d 'End after so many keys' -r
complete -c larder -n "__fish_larder_using_subcommand keys" -s s -l server -d 'The server: HOST[:PORT] or the path of a unix socket; tls: in front speaks TLS [default: 127.0.0.1:11211]' -r
complete -c larder -n "__fish_larder_using_subcommand keys" -l login -d 'Log in with the first line of this file, USER:PASSWORD' -r -F
complete -c larder -n "__fish_larder_using_subcommand keys" -l tls-ca -d 'Verify certificates of servers with TLS by the authorities in this file, not by this host\'s' -r -F
complete -c larder -n "__fish_larder_using_subcommand keys" -l tls-cert -d 'Present the certificate in this file' -r -F
complete -c larder -n "__fish_larder_using_subcommand keys" -l tls-key -d 'The private key of that certificate' -r -F
complete -c larder -n "__fish_larder_using_subcommand keys" -l tls-name -d 'The name that servers\' certificates must have; by default the host of the address' -r
complete -c larder -n "__fish_larder_using_subcommand keys" -l timeout -d 'The longest silence of a server' -r
complete -c larder -n "__fish_larder_using_subcommand keys" -s l -l long -d 'Show bytes, seconds left, seconds since the last access, and tier of each item, too'
complete -c larder -n "__fish_larder_using_subcommand keys" -l json -d 'Print each key as an object of JSON'
complete -c larder -n "__fish_larder_using_subcommand keys" -l tls-unverified -d 'Accept any certificate; for tests'
complete -c larder -n "__fish_larder_using_subcommand hist" -s n -l limit -d 'End after so many keys; the server lists them in no order of its own choice, so they are no fair sample' -r
complete -c larder -n "__fish_larder_using_subcommand hist" -l http -d 'Ask over the daemon\'s --http, HOST[:PORT] or unix:PATH, instead of over its port' -r
complete -c larder -n "__fish_larder_using_subcommand hist" -l http-token-file -d 'The file with the token of its --http-token-file' -r -F
complete -c larder -n "__fish_larder_using_subcommand hist" -s s -l server -d 'The server: HOST[:PORT] or the path of a unix socket; tls: in front speaks TLS [default: 127.0.0.1:11211]' -r
complete -c larder -n "__fish_larder_using_subcommand hist" -l login -d 'Log in with the first line of this file, USER:PASSWORD' -r -F
complete -c larder -n "__fish_larder_using_subcommand hist" -l tls-ca -d 'Verify certificates of servers with TLS by the authorities in this file, not by this host\'s' -r -F
complete -c larder -n "__fish_larder_using_subcommand hist" -l tls-cert -d 'Present the certificate in this file' -r -F
complete -c larder -n "__fish_larder_using_subcommand hist" -l tls-key -d 'The private key of that certificate' -r -F
complete -c larder -n "__fish_larder_using_subcommand hist" -l tls-name -d 'The name that servers\' certificates must have; by default the host of the address' -r
complete -c larder -n "__fish_larder_using_subcommand hist" -l timeout -d 'The longest silence of a server' -r
complete -c larder -n "__fish_larder_using_subcommand hist" -l json -d 'Print the numbers as JSON'
complete -c larder -n "__fish_larder_using_subcommand hist" -l tls-unverified -d 'Accept any certificate; for tests'
complete -c larder -n "__fish_larder_using_subcommand advise" -l price-ram -d 'The price of a GB of RAM for a month' -r
complete -c larder -n "__fish_larder_using_subcommand advise" -l price-ssd -d 'The price of a GB of SSD for a month' -r
complete -c larder -n "__fish_larder_using_subcommand advise" -l cost-of-miss -d 'The cost of a million misses' -r
complete -c larder -n "__fish_larder_using_subcommand advise" -l http -d 'Ask over the daemon\'s --http, HOST[:PORT] or unix:PATH, instead of over its port' -r
complete -c larder -n "__fish_larder_using_subcommand advise" -l http-token-file -d 'The file with the token of its --http-token-file' -r -F
complete -c larder -n "__fish_larder_using_subcommand advise" -s s -l server -d 'The server: HOST[:PORT] or the path of a unix socket; tls: in front speaks TLS [default: 127.0.0.1:11211]' -r
complete -c larder -n "__fish_larder_using_subcommand advise" -l login -d 'Log in with the first line of this file, USER:PASSWORD' -r -F
complete -c larder -n "__fish_larder_using_subcommand advise" -l tls-ca -d 'Verify certificates of servers with TLS by the authorities in this file, not by this host\'s' -r -F
complete -c larder -n "__fish_larder_using_subcommand advise" -l tls-cert -d 'Present the certificate in this file' -r -F
complete -c larder -n "__fish_larder_using_subcommand advise" -l tls-key -d 'The private key of that certificate' -r -F
complete -c larder -n "__fish_larder_using_subcommand advise" -l tls-name -d 'The name that servers\' certificates must have; by default the host of the address' -r
complete -c larder -n "__fish_larder_using_subcommand advise" -l timeout -d 'The longest silence of a server' -r
complete -c larder -n "__fish_larder_using_subcommand advise" -l json -d 'Print the numbers as JSON'
complete -c larder -n "__fish_larder_using_subcommand advise" -l tls-unverified -d 'Accept any certificate; for tests'
complete -c larder -n "__fish_larder_using_subcommand what-if" -l memory -d 'Another memory limit, as -m' -r
complete -c larder -n "__fish_larder_using_subcommand what-if" -l ssd -d 'Another size of the whole SSD' -r
complete -c larder -n "__fish_larder_using_subcommand what-if" -l ssd-admission -d 'Another admission to the SSD' -r -f -a "all\t''
returning\t''"
complete -c larder -n "__fish_larder_using_subcommand what-if" -l ssd-write-limit -d 'Another write limit' -r
complete -c larder -n "__fish_larder_using_subcommand what-if" -l item-size -d 'Another typical item size' -r
complete -c larder -n "__fish_larder_using_subcommand what-if" -l ttl-max -d 'A time after which every item expires at the latest' -r
complete -c larder -n "__fish_larder_using_subcommand what-if" -l wait -d 'Wait for a result, at most so long' -r
complete -c larder -n "__fish_larder_using_subcommand what-if" -s s -l server -d 'The server: HOST[:PORT] or the path of a unix socket; tls: in front speaks TLS [default: 127.0.0.1:11211]' -r
complete -c larder -n "__fish_larder_using_subcommand what-if" -l login -d 'Log in with the first line of this file, USER:PASSWORD' -r -F
complete -c larder -n "__fish_larder_using_subcommand what-if" -l tls-ca -d 'Verify certificates of servers with TLS by the authorities in this file, not by this host\'s' -r -F
complete -c larder -n "__fish_larder_using_subcommand what-if" -l tls-cert -d 'Present the certificate in this file' -r -F
complete -c larder -n "__fish_larder_using_subcommand what-if" -l tls-key -d 'The private key of that certificate' -r -F
complete -c larder -n "__fish_larder_using_subcommand what-if" -l tls-name -d 'The name that servers\' certificates must have; by default the host of the address' -r
complete -c larder -n "__fish_larder_using_subcommand what-if" -l timeout -d 'The longest silence of a server' -r
complete -c larder -n "__fish_larder_using_subcommand what-if" -l no-ssd-write-limit -d 'No write limit'
complete -c larder -n "__fish_larder_using_subcommand what-if" -l end -d 'End the trial'
complete -c larder -n "__fish_larder_using_subcommand what-if" -l json -d 'Print the numbers as JSON'
complete -c larder -n "__fish_larder_using_subcommand what-if" -l tls-unverified -d 'Accept any certificate; for tests'
complete -c larder -n "__fish_larder_using_subcommand doctor" -l root -d 'Check the host below this folder, which holds its proc and sys, instead of /' -r -F
complete -c larder -n "__fish_larder_using_subcommand doctor" -l http -d 'Ask over the daemon\'s --http, HOST[:PORT] or unix:PATH, instead of over its port' -r
complete -c larder -n "__fish_larder_using_subcommand doctor" -l http-token-file -d 'The file with the token of its --http-token-file' -r -F
complete -c larder -n "__fish_larder_using_subcommand doctor" -s s -l server -d 'The server: HOST[:PORT] or the path of a unix socket; tls: in front speaks TLS [default: 127.0.0.1:11211]' -r
complete -c larder -n "__fish_larder_using_subcommand doctor" -l login -d 'Log in with the first line of this file, USER:PASSWORD' -r -F
complete -c larder -n "__fish_larder_using_subcommand doctor" -l tls-ca -d 'Verify certificates of servers with TLS by the authorities in this file, not by this host\'s' -r -F
complete -c larder -n "__fish_larder_using_subcommand doctor" -l tls-cert -d 'Present the certificate in this file' -r -F
complete -c larder -n "__fish_larder_using_subcommand doctor" -l tls-key -d 'The private key of that certificate' -r -F
complete -c larder -n "__fish_larder_using_subcommand doctor" -l tls-name -d 'The name that servers\' certificates must have; by default the host of the address' -r
complete -c larder -n "__fish_larder_using_subcommand doctor" -l timeout -d 'The longest silence of a server' -r
complete -c larder -n "__fish_larder_using_subcommand doctor" -l json -d 'Print all checks as JSON'
complete -c larder -n "__fish_larder_using_subcommand doctor" -l tls-unverified -d 'Accept any certificate; for tests'
complete -c larder -n "__fish_larder_using_subcommand config" -l http -d 'Ask over the daemon\'s --http, HOST[:PORT] or unix:PATH, instead of over its port' -r
complete -c larder -n "__fish_larder_using_subcommand config" -l http-token-file -d 'The file with the token of its --http-token-file' -r -F
complete -c larder -n "__fish_larder_using_subcommand config" -s s -l server -d 'The server: HOST[:PORT] or the path of a unix socket; tls: in front speaks TLS [default: 127.0.0.1:11211]' -r
complete -c larder -n "__fish_larder_using_subcommand config" -l login -d 'Log in with the first line of this file, USER:PASSWORD' -r -F
complete -c larder -n "__fish_larder_using_subcommand config" -l tls-ca -d 'Verify certificates of servers with TLS by the authorities in this file, not by this host\'s' -r -F
complete -c larder -n "__fish_larder_using_subcommand config" -l tls-cert -d 'Present the certificate in this file' -r -F
complete -c larder -n "__fish_larder_using_subcommand config" -l tls-key -d 'The private key of that certificate' -r -F
complete -c larder -n "__fish_larder_using_subcommand config" -l tls-name -d 'The name that servers\' certificates must have; by default the host of the address' -r
complete -c larder -n "__fish_larder_using_subcommand config" -l timeout -d 'The longest silence of a server' -r
complete -c larder -n "__fish_larder_using_subcommand config" -l json -d 'Print the settings as JSON'
complete -c larder -n "__fish_larder_using_subcommand config" -l tls-unverified -d 'Accept any certificate; for tests'
