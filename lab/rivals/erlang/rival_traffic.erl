%% The workloads of processes and messages: `spawn`, `ring`, `mailbox`, `many-to-many`, `fan-in`, `ping-pong` and
%% `burst-send`. Processes are parked before the clock starts.
-module(rival_traffic).
-export([spawn/1, ring/3, mailbox/3, many_to_many/2, fan_in/2, burst_send/3, ping_pong/1]).
-compile({no_auto_import, [spawn/1]}).

%% What Elixir's compiler makes of a send; all other instructions of these programs are those that Erlang's makes.
-ifdef(ELIXIR).
-define(SEND(To, Message), erlang:send(To, Message)).
-else.
-define(SEND(To, Message), To ! Message).
-endif.

-define(LONGEST_COPIED, 64).
-define(MASK, 16#FFFFFFFF).
%% Above this the arithmetic of next/3 would leave the small integers.
-define(MOST_PROCESSES, 16#7FFFFFF).

%% How long a process takes to start and to end, and how much memory it holds while it waits. No list of pids is kept while
%% memory is measured; the emulator lists them before the teardown.
spawn(N) ->
    Limit = erlang:system_info(process_limit),
    N < Limit orelse
        rival:fail(io_lib:format("The emulator allows ~b processes: raise it with +P.", [Limit])),
    {Started, Ended} = {rival:gate(N), rival:gate(N)},
    Others = processes(),
    rival:at(0),
    SpawnClock = rival:now_ns(),
    spawn_all(N, Started, Ended),
    rival:wait(Started),
    Spawning = rival:now_ns() - SpawnClock,
    rival:at(N),
    Pids = processes() -- Others,
    EndClock = rival:now_ns(),
    lists:foreach(fun(Pid) -> ?SEND(Pid, die) end, Pids),
    rival:wait(Ended),
    wait_until_gone(length(Others)),
    Ending = rival:now_ns() - EndClock,
    rival:print([{ns_per_spawn, Spawning / N},
                 {ns_per_teardown, Ending / N}]).

spawn_all(0, _, _) ->
    ok;
spawn_all(N, Started, Ended) ->
    erlang:spawn(fun() -> live(Started, Ended) end),
    spawn_all(N - 1, Started, Ended).

live(Started, Ended) ->
    rival:count(Started),
    receive die -> rival:count(Ended) end.

wait_until_gone(Others) ->
    case erlang:system_info(process_count) > Others of
        true -> erlang:yield(), wait_until_gone(Others);
        false -> ok
    end.

%% Tokens go round a ring of processes, each of which knows only its neighbour.
ring(N, _, Tokens) when Tokens > N ->
    rival:fail("There are more tokens than processes: give tokens <= n.");
ring(N, M, Tokens) ->
    {Started, Arrived} = {rival:gate(N), rival:gate(Tokens)},
    Setup = rival:now_ns(),
    %% The ring is built backwards: the last process is spawned first and gets the first one's pid at
    %% the end.
    Last = erlang:spawn(fun() -> receive {neighbour, First} -> pass(First, Started, Arrived) end end),
    Pids = build(N - 1, [Last], Started, Arrived),
    ?SEND(Last, {neighbour, hd(Pids)}),
    Nodes = list_to_tuple(Pids),
    rival:wait(Started),
    Clock = rival:now_ns(),
    [?SEND(element(Token * N div Tokens + 1, Nodes), N * M) || Token <- lists:seq(0, Tokens - 1)],
    rival:wait(Arrived),
    End = rival:now_ns(),
    rival:print([{ns_per_hop, (End - Clock) / (N * M * Tokens)},
                 {ms_with_setup, (End - Setup) / 1.0e6}]).

build(0, Pids, _, _) ->
    Pids;
build(Left, [Neighbour | _] = Pids, Started, Arrived) ->
    Pid = erlang:spawn(fun() -> pass(Neighbour, Started, Arrived) end),
    build(Left - 1, [Pid | Pids], Started, Arrived).

pass(Neighbour, Started, Arrived) ->
    rival:count(Started),
    loop(Neighbour, Arrived).

%% The number in a token is how many hops it has left.
loop(Neighbour, Arrived) ->
    receive
        0 -> rival:count(Arrived);
        Hops -> ?SEND(Neighbour, Hops - 1)
    end,
    loop(Neighbour, Arrived).

%% One process sends itself messages and then receives them all. The queue is off the heap, because every garbage collection
%% scans one on the heap. Off the heap every message is copied, and with it a text of up to 64 bytes unless it is a literal,
%% which the shared one is. The emulator would share a longer fresh text, so that one is copied explicitly.
mailbox(K, Bytes, Payload) ->
    Original = binary:copy(<<"x">>, Bytes),
    persistent_term:put(?MODULE, Original),
    Text = text(Payload, Original),
    process_flag(message_queue_data, off_heap),
    rival:at(0),
    SendClock = rival:now_ns(),
    case Payload of
        fresh when Bytes > ?LONGEST_COPIED -> send_copies(K, Text);
        _ -> send(K, Text)
    end,
    Sending = rival:now_ns() - SendClock,
    rival:at(K),
    ReceiveClock = rival:now_ns(),
    receive_all(K),
    Receiving = rival:now_ns() - ReceiveClock,
    rival:print([{ns_per_send, Sending / K},
                 {ns_per_receive, Receiving / K}]).

%% A persistent term is a literal to the processes that get it: messages refer to it.
text(shared, _) -> persistent_term:get(?MODULE);
text(fresh, Original) -> Original.

send(0, _) ->
    ok;
send(K, Text) ->
    ?SEND(self(), {Text, K, K + 1, K * 0.5}),
    send(K - 1, Text).

send_copies(0, _) ->
    ok;
send_copies(K, Text) ->
    ?SEND(self(), {binary:copy(Text), K, K + 1, K * 0.5}),
    send_copies(K - 1, Text).

receive_all(0) ->
    ok;
receive_all(K) ->
    receive {_, _, _, _} -> receive_all(K - 1) end.

many_to_many(P, _) when P > ?MOST_PROCESSES ->
    rival:fail("The generator takes fewer processes: give processes below 134217728.");
many_to_many(P, M) ->
    {Started, Done} = {rival:gate(P), rival:gate(P)},
    Expected = counters:new(P, []),
    Pids = [erlang:spawn(fun() -> scatter(I, P, M, Expected, Started, Done) end)
            || I <- lists:seq(1, P)],
    persistent_term:put(?MODULE, list_to_tuple(Pids)),
    rival:wait(Started),
    Clock = rival:start_all(Pids),
    rival:wait(Done),
    rival:print([{ns_per_message, (rival:now_ns() - Clock) / (P * M)}]).

scatter(I, P, M, Expected, Started, Done) ->
    expect(M, 0, I, P, Expected),
    rival:count(Started),
    receive start -> ok end,
    send_to_others(M, 0, I, P, persistent_term:get(?MODULE)),
    receive_numbers(counters:get(Expected, I)),
    rival:count(Done).

%% Runs the generator beforehand, so that every process knows how many messages will arrive.
expect(0, _, _, _, _) ->
    ok;
expect(M, High, Low, P, Expected) ->
    {NextHigh, NextLow, Target} = next(High, Low, P),
    counters:add(Expected, Target, 1),
    expect(M - 1, NextHigh, NextLow, P, Expected).

send_to_others(0, _, _, _, _) ->
    ok;
send_to_others(M, High, Low, P, Pids) ->
    {NextHigh, NextLow, Target} = next(High, Low, P),
    ?SEND(element(Target, Pids), M),
    send_to_others(M - 1, NextHigh, NextLow, P, Pids).

receive_numbers(0) ->
    ok;
receive_numbers(Left) ->
    receive Number when is_integer(Number) -> receive_numbers(Left - 1) end.

%% One step of xorshift64 (shifts 13, 7, 17), and the target from 1 to P. The state is kept as two
%% halves of 32 bits, because an integer of 64 bits would be allocated on the heap.
-compile({inline, [next/3]}).
next(High0, Low0, P) ->
    High1 = High0 bxor (((High0 bsl 13) bor (Low0 bsr 19)) band ?MASK),
    Low1 = Low0 bxor ((Low0 bsl 13) band ?MASK),
    Low2 = Low1 bxor ((Low1 bsr 7) bor ((High1 bsl 25) band ?MASK)),
    High2 = High1 bxor (High1 bsr 7),
    High3 = High2 bxor (((High2 bsl 17) bor (Low2 bsr 15)) band ?MASK),
    Low3 = Low2 bxor ((Low2 bsl 17) band ?MASK),
    {High3, Low3, (((High3 rem P) bsl 32) bor Low3) rem P + 1}.

fan_in(Senders, Messages) ->
    {Started, Done} = {rival:gate(Senders + 1), rival:gate(1)},
    Receiver = spawn_opt(fun() -> gather(Senders * Messages, Started, Done) end,
                         [{message_queue_data, off_heap}]),
    Pids = [erlang:spawn(fun() -> send_share(Receiver, Messages, Started) end)
            || _ <- lists:seq(1, Senders)],
    rival:wait(Started),
    Clock = rival:start_all(Pids),
    rival:wait(Done),
    rival:print([{ns_per_message, (rival:now_ns() - Clock) / (Senders * Messages)}]).

gather(Total, Started, Done) ->
    rival:count(Started),
    receive_numbers(Total),
    rival:count(Done).

send_share(Receiver, Messages, Started) ->
    rival:count(Started),
    receive start -> send_numbers(Messages, Receiver) end.

send_numbers(0, _) ->
    ok;
send_numbers(Left, Receiver) ->
    ?SEND(Receiver, Left),
    send_numbers(Left - 1, Receiver).

%% One process sends to each of its receivers in turn.
burst_send(Receivers, Cores, Messages) ->
    rival:bind_to_processors(Cores),
    Each = (Messages + Receivers - 1) div Receivers,
    {Started, Done} = {rival:gate(Receivers + 1), rival:gate(Receivers)},
    Everyone = [spawn_opt(fun() -> gather(Each, Started, Done) end,
                          [{message_queue_data, off_heap}])
                || _ <- lists:seq(1, Receivers)],
    Sender = erlang:spawn(fun() ->
                       rival:count(Started),
                       receive start -> send_rounds(Each, Everyone) end
                   end),
    rival:wait(Started),
    Clock = rival:start_all([Sender]),
    rival:wait(Done),
    Elapsed = rival:now_ns() - Clock,
    rival:print([{ns_per_message, Elapsed / (Receivers * Each)}]).

send_rounds(0, _) ->
    ok;
send_rounds(Left, Everyone) ->
    lists:foreach(fun(Receiver) -> Receiver ! Left end, Everyone),
    send_rounds(Left - 1, Everyone).

ping_pong(Rounds) ->
    Done = rival:gate(1),
    Ping = erlang:spawn(fun() -> receive {peer, Pong} -> ping(Pong, Done) end end),
    Pong = erlang:spawn(fun() -> pong(Ping) end),
    ?SEND(Ping, {peer, Pong}),
    rival:settle(),
    Clock = rival:now_ns(),
    ?SEND(Ping, Rounds),
    rival:wait(Done),
    rival:print([{ns_per_round_trip, (rival:now_ns() - Clock) / Rounds}]).

ping(Pong, Done) ->
    receive
        0 -> rival:count(Done);
        Left -> ?SEND(Pong, Left - 1), ping(Pong, Done)
    end.

pong(Ping) ->
    receive Left -> ?SEND(Ping, Left) end,
    pong(Ping).
