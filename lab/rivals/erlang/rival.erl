%% The rival Erlang: runs one workload and ends the emulator; and what every workload, and the rival Elixir, measures
%% with.
%%
%% rival-start (common/src/start.rs) checks the keys and puts them into the environment, and says what the program may
%% ask it.
%%
%% Invariants: metrics go to stdout with exit code 0, an error is one sentence on stderr with exit
%% code 1, or 2 for bad usage; `workers` must be the number of schedulers that the emulator was
%% started with (`+S`). Started with `-s rival main -extra WORKLOAD`.
-module(rival).
-export([main/0, main/3, programs/0, print/1, fail/1]).
-export([now_ns/0, at/1, bind_to_processors/1, gate/1, count/1, wait/1, start_all/1, settle/0]).

-define(NONE, "A process cannot block the OS thread it runs on: use offender=computes.").

%% The module and function of each workload, and its keys in the order of the arguments: a number, or one of these
%% words.
programs() ->
    #{"spawn" => {rival_traffic, spawn, [{"n", number}]},
      "ring" => {rival_traffic, ring, [{"n", number}, {"m", number}, {"tokens", number}]},
      "mailbox" => {rival_traffic, mailbox, [{"k", number}, {"bytes", number}, {"payload", ["shared", "fresh"]}]},
      "many-to-many" => {rival_traffic, many_to_many, [{"processes", number}, {"messages", number}]},
      "fan-in" => {rival_traffic, fan_in, [{"senders", number}, {"messages", number}]},
      "ping-pong" => {rival_traffic, ping_pong, [{"rounds", number}]},
      "burst-send" => {rival_traffic, burst_send, [{"receivers", number}, {"cores", number}, {"messages", number}]},
      "lifecycle" => {rival_processes, lifecycle, [{"n", number}]},
      "call" => {rival_processes, call, [{"rounds", number}, {"callee", ["process", "server"]},
                                         {"timeout", ["yes", "no"]}]},
      "call-behind-queue" => {rival_processes, call_behind_queue, [{"waiting", number}, {"rounds", number}]},
      "broadcast" => {rival_processes, broadcast, [{"members", number}, {"rounds", number}]},
      "stall" => {rival_stall, stall, [{"offender", ["none", "computes"]}, {"offenders", number},
                                       {"burst", ["no", "yes"]}, {"seconds", number}, {"pingers", number}]},
      "handoff" => {rival_stall, handoff, [{"rounds", number}]},
      "callbacks" => {rival_stall, callbacks, [{"n", number}, {"kind", ["once", "loop"]}]}}.

-spec main() -> no_return().
main() ->
    Version = io_lib:format("Erlang/OTP ~s (erts ~s)",
                            [erlang:system_info(otp_release), erlang:system_info(version)]),
    main(init:get_plain_arguments(), Version, programs()).

%% In a process of its own, because this one may receive other messages.
main(Arguments, Version, Programs) ->
    {Main, Monitor} = spawn_monitor(fun() -> run(Arguments, Version, Programs) end),
    receive
        {'DOWN', Monitor, process, Main, Reason} ->
            fail(io_lib:format("The workload crashed: ~0p.", [Reason]))
    end.

run([], _, _) ->
    bad_usage("No workload is given: let rival-start call it, or give --version.");
run(["--version" | _], Version, _) ->
    io:format("~s~n", [Version]),
    halt(0);
run([Workload | _], _, Programs) ->
    case Programs of
        #{Workload := {Module, Function, Keys}} ->
            value({"workers", number}) =:= erlang:system_info(schedulers_online) orelse
                bad_usage("The emulator has another number of schedulers: start it with +S N:N."),
            apply(Module, Function, [value(Key) || Key <- Keys]);
        _ ->
            bad_usage(["The workload `", Workload, "` is unknown: see the README."])
    end.

%% The starter has checked that it is a number, or there.
value({Key, number}) ->
    list_to_integer(os:getenv(Key));
value({Key, Words}) ->
    Text = os:getenv(Key),
    case lists:member(Text, Words) of
        true -> list_to_atom(Text);
        false when Key =:= "offender" -> fail(?NONE);
        false -> bad_usage(["The key `", Key, "` takes one of: ", lists:join(", ", Words), "."])
    end.

%% Prints one line per metric and ends the emulator.
-spec print([{atom(), number()}]) -> no_return().
print(Metrics) ->
    io:put_chars([io_lib:format("~s ~.3f~n", [Name, float(Value)]) || {Name, Value} <- Metrics]),
    halt(0).

%% Ends the emulator because the rival cannot do what was asked.
-spec fail(iodata()) -> no_return().
fail(Sentence) ->
    io:put_chars(standard_error, [Sentence, "\n"]),
    halt(1).

bad_usage(Sentence) ->
    io:put_chars(standard_error, [Sentence, "\n"]),
    halt(2).

now_ns() ->
    erlang:monotonic_time(nanosecond).

%% Tells the starter that this program holds so many things, and waits while it reads the memory.
at(Size) ->
    io:format("at ~b~n", [Size]),
    io:get_line("").

%% Binds every thread of the emulator to the first of the processors that it may use.
bind_to_processors(Most) ->
    Listed = os:cmd("sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/" ++ os:getpid()
                    ++ "/status"),
    Usable = lists:append([numbers(Range) || Range <- string:tokens(Listed, ",\n")]),
    Chosen = lists:join(",", [integer_to_list(Cpu) || Cpu <- lists:sublist(Usable, Most)]),
    case os:cmd(lists:append(["taskset -a -c -p ", Chosen, " ", os:getpid(),
                              " >/dev/null 2>&1 && echo bound"])) of
        "bound\n" -> ok;
        _ -> fail("The processors cannot be chosen: install taskset, of util-linux.")
    end.

numbers(Range) ->
    case [list_to_integer(Text) || Text <- string:tokens(Range, "-")] of
        [From, To] -> lists:seq(From, To);
        [One] -> [One]
    end.

%% A counter that sends its creator a message when it is full.
gate(Full) ->
    {atomics:new(1, []), Full, self(), make_ref()}.

count({Counter, Full, Maker, Ref}) ->
    case atomics:add_get(Counter, 1, 1) of
        Full -> Maker ! Ref, ok;
        _ -> ok
    end.

wait({_, _, _, Ref}) ->
    receive Ref -> ok end.

%% Starts the clock and then every process, after all have parked.
start_all(Pids) ->
    settle(),
    Clock = now_ns(),
    lists:foreach(fun(Pid) -> Pid ! start end, Pids),
    Clock.

%% Long enough for a process that has counted itself started to reach its receive.
settle() ->
    timer:sleep(50).
