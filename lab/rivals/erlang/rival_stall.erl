%% `stall` and `handoff`: what happens to the others when one process does not yield; and `callbacks`, which sleep.
-module(rival_stall).
-export([stall/5, handoff/1, callbacks/2]).

-define(TICK, 5).
-define(PAUSE, 20).
-define(OFFENCE, 300).
-define(BURST, 2000).
%% How long everything runs undisturbed before a burst.
-define(CALM, 500).
-define(HANDOFF_WORK, 50).
-define(HOUR, 3600000).
-define(SLEEP_BEGINS, 20).
%% Counters of 8 bytes per cache line, so that pairs do not share one.
-define(SPACING, 8).

stall(Offender, Offenders, Burst, Seconds, Pingers) ->
    Pairs = Pingers div 2,
    Counters = counters:new(max(Pairs, 1) * ?SPACING, []),
    [start_pair(Counters, Pair * ?SPACING) || Pair <- lists:seq(1, Pairs)],
    Main = self(),
    Calm = case Burst of yes -> ?CALM; no -> 0 end,
    Offend = fun() ->
                 [spawn(fun() -> offend(Burst) end)
                  || Offender =:= computes, _ <- lists:seq(1, Offenders)]
             end,
    Burst =:= no andalso Offend(),
    Begin = rival:now_ns() + Calm * 1000000,
    spawn(fun() ->
              Length = (Calm + Seconds * 1000) * 1000000,
              Main ! {ticked, tick(Length, Begin, Counters, Pairs)}
          end),
    case Burst of
        yes -> timer:sleep(?CALM), Offend();
        no -> ok
    end,
    receive {ticked, Metrics} -> rival:print(Metrics) end.

%% Prints when each sleep ended, counted from the first offence, and how late.
tick(Length, Begin, Counters, Pairs) ->
    Clock = rival:now_ns(),
    Before = total(Counters, Pairs),
    Ticks = tick_until(Clock + Length, []),
    {Hops, Running} = {total(Counters, Pairs) - Before, rival:now_ns() - Clock},
    [io:format("tick ~b ~b~n", [At - Begin, Late]) || {At, Late} <- lists:reverse(Ticks)],
    [{ns_per_hop, Running / Hops} || Hops > 0].

tick_until(End, Ticks) ->
    Start = rival:now_ns(),
    if
        Start >= End ->
            Ticks;
        true ->
            timer:sleep(?TICK),
            At = rival:now_ns(),
            tick_until(End, [{At, At - Start - ?TICK * 1000000} | Ticks])
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

offend(yes) ->
    compute_until(rival:now_ns() + ?BURST * 1000000);
offend(no) ->
    timer:sleep(?PAUSE),
    compute_until(rival:now_ns() + ?OFFENCE * 1000000),
    offend(no).

%% Arithmetic without waiting; the state stays within the small integers.
compute_until(End) ->
    compute(1000, 7),
    case rival:now_ns() < End of
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
    receive {lateness, Lateness} -> [io:format("late ~b~n", [Late]) || Late <- Lateness] end,
    rival:print([]).

answer(Waker) ->
    receive Sent -> Waker ! {late, rival:now_ns() - Sent} end,
    answer(Waker).

wake_and_compute(Woken) ->
    %% Waits for a timer first, as in every rival.
    timer:sleep(?TICK),
    Woken ! rival:now_ns(),
    compute_until(rival:now_ns() + ?HANDOFF_WORK * 1000000),
    receive {late, Late} -> Late end.

%% Processes that sleep are Erlang's means for code that runs later and can end on its own.
callbacks(N, Kind) ->
    Grow = fun(Size, Started) ->
               start(Size - Started, Started, Kind),
               timer:sleep(?SLEEP_BEGINS),
               rival:at(Size),
               Size
           end,
    lists:foldl(Grow, 0, lists:usort([N * Step div 8 || Step <- lists:seq(0, 8)])),
    rival:print([]).

start(0, _, _) ->
    ok;
start(Count, Index, once) ->
    spawn(fun() -> once(Index, Index) end),
    start(Count - 1, Index + 1, once);
start(Count, Index, loop) ->
    spawn(fun() -> loop(Index) end),
    start(Count - 1, Index + 1, loop).

once(First, Second) ->
    receive after ?HOUR -> First + Second end.

loop(Index) ->
    receive after ?HOUR -> loop(Index) end.
