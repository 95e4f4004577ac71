%% `lifecycle`, `call`, `call-behind-queue` and `broadcast`: links, monitors and exits, calls, groups.
-module(rival_processes).
-behaviour(gen_server).
-export([lifecycle/1, call/3, call_behind_queue/2, broadcast/2]).
-export([init/1, handle_call/3, handle_cast/2]).

%% One process links and monitors N parked ones, tells each to end, and receives a notice of each link
%% and of each monitor.
lifecycle(N) ->
    Started = rival:gate(N),
    Pids = [spawn(fun() -> rival:count(Started), receive die -> ok end end)
            || _ <- lists:seq(1, N)],
    rival:wait(Started),
    rival:settle(),
    Main = self(),
    spawn_opt(fun() ->
                  process_flag(trap_exit, true),
                  Main ! {measured, watch(Pids)}
              end, [{message_queue_data, off_heap}]),
    receive {measured, Elapsed} -> rival:print([{ns, Elapsed / N}]) end.

watch(Pids) ->
    rival:at(0),
    Clock = rival:now_ns(),
    lists:foreach(fun(Pid) -> link(Pid), monitor(process, Pid) end, Pids),
    Watching = rival:now_ns() - Clock,
    rival:at(length(Pids)),
    Again = rival:now_ns(),
    lists:foreach(fun(Pid) -> Pid ! die end, Pids),
    notices(2 * length(Pids)),
    Watching + rival:now_ns() - Again.

notices(0) ->
    ok;
notices(Left) ->
    receive
        {'EXIT', _, normal} -> notices(Left - 1);
        {'DOWN', _, process, _, normal} -> notices(Left - 1)
    end.

call(Rounds, Callee, yes) -> call_within(Rounds, Callee, 5000);
call(Rounds, Callee, no) -> call_within(Rounds, Callee, infinity).

call_within(Rounds, process, Timeout) ->
    Callee = spawn(fun answer/0),
    timed(ns_per_round_trip, Rounds, fun(Value) -> ask(Callee, Value, Timeout) end);
call_within(Rounds, server, Timeout) ->
    {ok, Server} = gen_server:start(?MODULE, [], []),
    timed(ns_per_round_trip, Rounds, fun(Value) -> gen_server:call(Server, Value, Timeout) end).

call_behind_queue(Waiting, Rounds) ->
    {ok, Server} = gen_server:start(?MODULE, [], []),
    Caller = spawn_opt(fun() ->
                 receive go -> ok end,
                 timed(ns, Rounds, fun(Value) -> gen_server:call(Server, Value, infinity) end)
             end, [{message_queue_data, off_heap}]),
    lists:foreach(fun(Number) -> Caller ! Number end, lists:seq(1, Waiting)),
    Caller ! go,
    %% The caller prints and ends the emulator.
    receive after infinity -> ok end.

%% Makes the calls, prints, and ends the emulator.
timed(Metric, Rounds, Ask) ->
    0 = Ask(0),
    Clock = rival:now_ns(),
    ask_all(Rounds, Ask),
    rival:print([{Metric, (rival:now_ns() - Clock) / Rounds}]).

ask_all(0, _) ->
    ok;
ask_all(Left, Ask) ->
    Left = Ask(Left),
    ask_all(Left - 1, Ask).

answer() ->
    receive {From, Tag, Value} -> From ! {Tag, Value}, answer() end.

ask(Callee, Value, Timeout) ->
    Tag = monitor(process, Callee),
    Callee ! {self(), Tag, Value},
    receive
        {Tag, Answer} -> demonitor(Tag, [flush]), Answer;
        {'DOWN', Tag, _, _, Reason} -> exit(Reason)
    after Timeout ->
        exit(timeout)
    end.

init([]) -> {ok, none}.

handle_call(Value, _, State) -> {reply, Value, State}.

handle_cast(_, State) -> {noreply, State}.

broadcast(Members, Rounds) ->
    {ok, _} = pg:start_link(),
    {Started, Done} = {rival:gate(Members), rival:gate(Members)},
    Pids = [spawn(fun() -> member(Rounds, Started, Done) end) || _ <- lists:seq(1, Members)],
    ok = pg:join(members, Pids),
    rival:wait(Started),
    rival:settle(),
    Clock = rival:now_ns(),
    send_rounds(Rounds),
    rival:wait(Done),
    Elapsed = rival:now_ns() - Clock,
    rival:print([{ns_per_message, Elapsed / (Members * Rounds)}]).

send_rounds(0) ->
    ok;
send_rounds(Left) ->
    lists:foreach(fun(Pid) -> Pid ! Left end, pg:get_members(members)),
    send_rounds(Left - 1).

member(Rounds, Started, Done) ->
    rival:count(Started),
    receive_rounds(Rounds),
    rival:count(Done),
    receive never -> ok end.

receive_rounds(0) ->
    ok;
receive_rounds(Left) ->
    receive Left -> receive_rounds(Left - 1) end.
