%% `spawn`: how long a process takes to start and to end, and how much memory it holds while it
%% waits.
%%
%% Invariant: no list of pids is kept while memory is measured; the emulator lists them before the
%% teardown.
-module(rival_spawn).
-export([run/1]).

run(N) ->
    Limit = erlang:system_info(process_limit),
    N < Limit orelse
        rival:fail(io_lib:format("The emulator allows ~b processes: raise it with +P.", [Limit])),
    {Started, Ended} = {rival_measure:gate(N), rival_measure:gate(N)},
    Others = processes(),
    RssBefore = rival_measure:rss_bytes(),
    SpawnClock = rival_measure:now_ns(),
    spawn_all(N, Started, Ended),
    rival_measure:wait(Started),
    Spawning = rival_measure:now_ns() - SpawnClock,
    Grown = max(rival_measure:rss_bytes() - RssBefore, 0),
    Pids = processes() -- Others,
    EndClock = rival_measure:now_ns(),
    lists:foreach(fun(Pid) -> Pid ! die end, Pids),
    rival_measure:wait(Ended),
    wait_until_gone(length(Others)),
    Ending = rival_measure:now_ns() - EndClock,
    rival:print([{"ns_per_spawn", Spawning / N},
                 {"ns_per_teardown", Ending / N},
                 {"bytes_per_process", Grown / N}]).

spawn_all(0, _, _) ->
    ok;
spawn_all(N, Started, Ended) ->
    spawn(fun() -> live(Started, Ended) end),
    spawn_all(N - 1, Started, Ended).

live(Started, Ended) ->
    rival_measure:count(Started),
    receive die -> rival_measure:count(Ended) end.

wait_until_gone(Others) ->
    case erlang:system_info(process_count) > Others of
        true -> erlang:yield(), wait_until_gone(Others);
        false -> ok
    end.
