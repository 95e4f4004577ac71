%% `stall` and `handoff`: what happens to the others when one process does not yield.
-module(rival_stall).
-export([run/4, handoff/1]).

-define(TICK, 5).
-define(PAUSE, 20).
-define(OFFENCE, 300).
-define(HANDOFF_WORK, 50).
%% Counters of 8 bytes per cache line, so that pairs do not share one.
-define(SPACING, 8).

run(blocks, _, _, _) ->
    rival:fail("Erlang code cannot block the OS thread it runs on: use offender=computes.");
run(Offender, Offenders, Seconds, Pingers) ->
    Pairs = Pingers div 2,
    Counters = counters:new(max(Pairs, 1) * ?SPACING, []),
    [start_pair(Counters, Pair * ?SPACING) || Pair <- lists:seq(1, Pairs)],
    [spawn(fun offend/0) || Offender =:= computes, _ <- lists:seq(1, Offenders)],
    Main = self(),
    spawn(fun() -> Main ! {ticked, tick(Seconds * 1000000000, Counters, Pairs)} end),
    receive {ticked, Metrics} -> rival:print(Metrics) end.

tick(Length, Counters, Pairs) ->
    Clock = rival_measure:now_ns(),
    Before = total(Counters, Pairs),
    Lateness = tick_until(Clock + Length, []),
    {Hops, Running} = {total(Counters, Pairs) - Before, rival_measure:now_ns() - Clock},
    [{"ticks", length(Lateness)},
     {"lateness_p999_ms", rival_measure:milliseconds(Lateness, 0.999)},
     {"lateness_worst_ms", rival_measure:milliseconds(Lateness, 1)}
     | [{"ns_per_hop", Running / Hops} || Hops > 0]].

tick_until(End, Lateness) ->
    Start = rival_measure:now_ns(),
    if
        Start >= End ->
            Lateness;
        true ->
            timer:sleep(?TICK),
            tick_until(End, [rival_measure:now_ns() - Start - ?TICK * 1000000 | Lateness])
    end.

total(Counters, Pairs) ->
    lists:sum([counters:get(Counters, Pair * ?SPACING) || Pair <- lists:seq(1, Pairs)]).

start_pair(Counters, Index) ->
    Ping = spawn(fun() -> receive {peer, Pong} -> ping(Pong, Counters, Index) end end),
    Pong = spawn(fun() -> pong(Ping) end),
    Ping ! {peer, Pong},
    Ping ! 0.

ping(Pong, Counters, Index) ->
    receive
        Number ->
            counters:put(Counters, Index, Number),
            Pong ! Number + 2
    end,
    ping(Pong, Counters, Index).

pong(Ping) ->
    receive Number -> Ping ! Number end,
    pong(Ping).

offend() ->
    timer:sleep(?PAUSE),
    compute_until(rival_measure:now_ns() + ?OFFENCE * 1000000),
    offend().

%% Arithmetic without waiting; the state stays within the small integers.
compute_until(End) ->
    compute(1000, 7),
    case rival_measure:now_ns() < End of
        true -> compute_until(End);
        false -> ok
    end.

compute(0, State) -> State;
compute(Left, State) -> compute(Left - 1, (State * 2017 + 2020) band 16#FFFFFFFF).

handoff(Rounds) ->
    Main = self(),
    spawn(fun() ->
              Waker = self(),
              Woken = spawn(fun() -> answer(Waker) end),
              Main ! {lateness, [wake_and_compute(Woken) || _ <- lists:seq(1, Rounds)]}
          end),
    receive
        {lateness, Lateness} ->
            rival:print([{"lateness_worst_ms", rival_measure:milliseconds(Lateness, 1)},
                         {"lateness_p50_ms", rival_measure:milliseconds(Lateness, 0.5)}])
    end.

answer(Waker) ->
    receive Sent -> Waker ! {late, rival_measure:now_ns() - Sent} end,
    answer(Waker).

wake_and_compute(Woken) ->
    %% Waits for a timer first, as in every rival.
    timer:sleep(?TICK),
    Woken ! rival_measure:now_ns(),
    compute_until(rival_measure:now_ns() + ?HANDOFF_WORK * 1000000),
    receive {late, Late} -> Late end.
