%% `many-to-many`, `fan-in` and `ping-pong`: processes that are parked before the clock starts
%% exchange small integers.
-module(rival_traffic).
-export([many_to_many/2, fan_in/2, burst_send/2, ping_pong/1]).

%% Long enough, in milliseconds, for a process that has counted itself started to reach its receive.
-define(SETTLE, 50).
-define(MASK, 16#FFFFFFFF).
%% Above this the arithmetic of next/3 would leave the small integers.
-define(MOST_PROCESSES, 16#7FFFFFF).

many_to_many(P, _) when P > ?MOST_PROCESSES ->
    rival:fail("The generator takes fewer processes: give processes below 134217728.");
many_to_many(P, M) ->
    {Started, Done} = {rival_measure:gate(P), rival_measure:gate(P)},
    Expected = counters:new(P, []),
    Pids = [spawn(fun() -> scatter(I, P, M, Expected, Started, Done) end)
            || I <- lists:seq(1, P)],
    persistent_term:put(?MODULE, list_to_tuple(Pids)),
    rival_measure:wait(Started),
    Clock = start_all(Pids),
    rival_measure:wait(Done),
    rival:print([{"ns_per_message", (rival_measure:now_ns() - Clock) / (P * M)}]).

scatter(I, P, M, Expected, Started, Done) ->
    expect(M, 0, I, P, Expected),
    rival_measure:count(Started),
    receive start -> ok end,
    send_to_others(M, 0, I, P, persistent_term:get(?MODULE)),
    receive_numbers(counters:get(Expected, I)),
    rival_measure:count(Done).

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
    element(Target, Pids) ! M,
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
    {Started, Done} = {rival_measure:gate(Senders + 1), rival_measure:gate(1)},
    Receiver = spawn_opt(fun() -> gather(Senders * Messages, Started, Done) end,
                         [{message_queue_data, off_heap}]),
    Pids = [spawn(fun() -> send_share(Receiver, Messages, Started) end)
            || _ <- lists:seq(1, Senders)],
    rival_measure:wait(Started),
    Clock = start_all(Pids),
    rival_measure:wait(Done),
    rival:print([{"ns_per_message", (rival_measure:now_ns() - Clock) / (Senders * Messages)}]).

gather(Total, Started, Done) ->
    rival_measure:count(Started),
    receive_numbers(Total),
    rival_measure:count(Done).

send_share(Receiver, Messages, Started) ->
    rival_measure:count(Started),
    receive start -> send_numbers(Messages, Receiver) end.

send_numbers(0, _) ->
    ok;
send_numbers(Left, Receiver) ->
    Receiver ! Left,
    send_numbers(Left - 1, Receiver).

%% One process sends to each of its receivers in turn.
burst_send(Receivers, Each) ->
    {Started, Done} = {rival_measure:gate(Receivers + 1), rival_measure:gate(Receivers)},
    Everyone = [spawn_opt(fun() -> gather(Each, Started, Done) end,
                          [{message_queue_data, off_heap}])
                || _ <- lists:seq(1, Receivers)],
    Sender = spawn(fun() ->
                       rival_measure:count(Started),
                       receive start -> send_rounds(Each, Everyone) end
                   end),
    rival_measure:wait(Started),
    Clock = start_all([Sender]),
    rival_measure:wait(Done),
    Elapsed = rival_measure:now_ns() - Clock,
    rival:print([{"ns_per_message", Elapsed / (Receivers * Each)}]).

send_rounds(0, _) ->
    ok;
send_rounds(Left, Everyone) ->
    lists:foreach(fun(Receiver) -> Receiver ! Left end, Everyone),
    send_rounds(Left - 1, Everyone).

%% Starts the clock and then every process, after all have parked.
start_all(Pids) ->
    timer:sleep(?SETTLE),
    Clock = rival_measure:now_ns(),
    lists:foreach(fun(Pid) -> Pid ! start end, Pids),
    Clock.

ping_pong(Rounds) ->
    Done = rival_measure:gate(1),
    Ping = spawn(fun() -> receive {peer, Pong} -> ping(Pong, Done) end end),
    Pong = spawn(fun() -> pong(Ping) end),
    Ping ! {peer, Pong},
    timer:sleep(?SETTLE),
    Clock = rival_measure:now_ns(),
    Ping ! Rounds,
    rival_measure:wait(Done),
    rival:print([{"ns_per_round_trip", (rival_measure:now_ns() - Clock) / Rounds}]).

ping(Pong, Done) ->
    receive
        0 -> rival_measure:count(Done);
        Left -> Pong ! Left - 1, ping(Pong, Done)
    end.

pong(Ping) ->
    receive Left -> Ping ! Left end,
    pong(Ping).
