%% `ring`: tokens go round a ring of processes, each of which knows only its neighbour.
-module(rival_ring).
-export([run/3]).

run(N, M, Tokens) ->
    {Started, Arrived} = {rival_measure:gate(N), rival_measure:gate(Tokens)},
    Setup = rival_measure:now_ns(),
    %% The ring is built backwards: the last process is spawned first and gets the first one's pid at
    %% the end.
    Last = spawn(fun() -> receive {neighbour, First} -> pass(First, Started, Arrived) end end),
    Pids = build(N - 1, [Last], Started, Arrived),
    Last ! {neighbour, hd(Pids)},
    Nodes = list_to_tuple(Pids),
    rival_measure:wait(Started),
    Clock = rival_measure:now_ns(),
    [element(Token * N div Tokens + 1, Nodes) ! N * M || Token <- lists:seq(0, Tokens - 1)],
    rival_measure:wait(Arrived),
    End = rival_measure:now_ns(),
    rival:print([{"ns_per_hop", (End - Clock) / (N * M * Tokens)},
                 {"ms_with_setup", (End - Setup) / 1.0e6}]).

build(0, Pids, _, _) ->
    Pids;
build(Left, [Neighbour | _] = Pids, Started, Arrived) ->
    Pid = spawn(fun() -> pass(Neighbour, Started, Arrived) end),
    build(Left - 1, [Pid | Pids], Started, Arrived).

pass(Neighbour, Started, Arrived) ->
    rival_measure:count(Started),
    loop(Neighbour, Arrived).

%% The number in a token is how many hops it has left.
loop(Neighbour, Arrived) ->
    receive
        0 -> rival_measure:count(Arrived);
        Hops -> Neighbour ! Hops - 1
    end,
    loop(Neighbour, Arrived).
