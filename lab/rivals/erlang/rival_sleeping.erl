%% `callbacks`: processes that sleep, which is Erlang's means for code that runs later and can end on its own.
-module(rival_sleeping).
-export([run/2]).

-define(HOUR, 3600000).
-define(SETTLE, 20).

run(N, Kind) ->
    Sizes = lists:usort([N * Step div 8 || Step <- lists:seq(0, 8)]),
    print_line(measure(Sizes, 0, Kind)).

measure([], _, _) ->
    [];
measure([Size | Sizes], Started, Kind) ->
    start(Size - Started, Started, Kind),
    timer:sleep(?SETTLE),
    Point = {Size, rival_measure:rss_bytes()},
    [Point | measure(Sizes, Size, Kind)].

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

%% Prints the least-squares line through numbers of processes and resident memories.
print_line(Points) ->
    Middle = mean([X || {X, _} <- Points]),
    Level = mean([Y || {_, Y} <- Points]),
    Along = mean([(X - Middle) * (Y - Level) || {X, Y} <- Points]),
    PerOne = Along / mean([(X - Middle) * (X - Middle) || {X, _} <- Points]),
    Intercept = Level - PerOne * Middle,
    Width = mean([(Y - Level) * (Y - Level) || {_, Y} <- Points]),
    Beside = mean([math:pow(Y - Intercept - PerOne * X, 2) || {X, Y} <- Points]),
    Squared = case Width > 0 of
        true -> 1 - Beside / Width;
        false -> 1.0
    end,
    rival:print([{"bytes_per_callback", PerOne},
                 {"intercept_bytes", Intercept},
                 {"r", math:sqrt(max(Squared, 0.0))},
                 {"r2", Squared}]).

mean(Values) ->
    lists:sum(Values) / length(Values).
