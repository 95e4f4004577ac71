%% The rival Erlang: reads `WORKLOAD key=value ...`, runs one workload and ends the emulator; and what every workload, and
%% the rival Elixir, measures with.
%%
%% Invariants: metrics go to stdout with exit code 0, an error is one sentence on stderr with exit
%% code 1, or 2 for bad usage; `workers` must be the number of schedulers that the emulator was
%% started with (`+S`). Started with `-s rival main -extra ARGUMENTS`.
-module(rival).
-export([main/0, main/3, programs/0, print/1, fail/1]).
-export([now_ns/0, rss_bytes/0, bind_to_processors/1, gate/1, count/1, wait/1, milliseconds/2]).
-export([start_all/1, settle/0, print_line/1, sizes/1]).

-define(NONE, "A process cannot block the OS thread it runs on: use offender=computes.").

%% The module and function of each workload, and its keys in the order of the arguments: a number takes at least that one,
%% anything else is the list of the words that it takes.
programs() ->
    #{"spawn" => {rival_traffic, spawn, [{"n", 1}]},
      "ring" => {rival_traffic, ring, [{"n", 1}, {"m", 1}, {"tokens", 1}]},
      "mailbox" => {rival_traffic, mailbox, [{"k", 1}, {"bytes", 1}, {"payload", ["shared", "fresh"]}]},
      "many-to-many" => {rival_traffic, many_to_many, [{"processes", 1}, {"messages", 1}]},
      "fan-in" => {rival_traffic, fan_in, [{"senders", 1}, {"messages", 1}]},
      "ping-pong" => {rival_traffic, ping_pong, [{"rounds", 1}]},
      "burst-send" => {rival_traffic, burst_send, [{"receivers", 1}, {"cores", 1}, {"messages", 1}]},
      "lifecycle" => {rival_processes, lifecycle, [{"n", 1}]},
      "call" => {rival_processes, call, [{"rounds", 1}, {"callee", ["process", "server"]},
                                         {"timeout", ["yes", "no"]}]},
      "call-behind-queue" => {rival_processes, call_behind_queue, [{"waiting", 0}, {"rounds", 1}]},
      "broadcast" => {rival_processes, broadcast, [{"members", 1}, {"rounds", 1}]},
      "stall" => {rival_stall, stall, [{"offender", ["none", "computes"]}, {"offenders", 0},
                                       {"burst", ["no", "yes"]}, {"seconds", 1}, {"pingers", 0}]},
      "handoff" => {rival_stall, handoff, [{"rounds", 1}]},
      "callbacks" => {rival_stall, callbacks, [{"n", 1}, {"kind", ["once", "loop"]}]}}.

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
    bad_usage("No workload is given: call it as WORKLOAD key=value ..., or with --version.");
run(["--version" | _], Version, _) ->
    io:format("~s~n", [Version]),
    halt(0);
run([Workload | Pairs], _, Programs) ->
    Given = maps:from_list([pair(string:split(Pair, "=")) || Pair <- Pairs]),
    map_size(Given) =:= length(Pairs) orelse bad_usage("A key is given twice: give each once."),
    case Programs of
        #{Workload := {Module, Function, Keys}} ->
            All = [{"workers", 1} | Keys],
            [bad_usage(["The key `", Key, "` does not belong to this workload: leave it out."])
             || Key <- maps:keys(Given), not lists:keymember(Key, 1, All)],
            [Workers | Values] = [value(Key, Rule, Given) || {Key, Rule} <- All],
            Workers =:= erlang:system_info(schedulers_online) orelse
                bad_usage("The emulator has another number of schedulers: start it with +S N:N."),
            apply(Module, Function, Values);
        _ ->
            bad_usage(["The workload `", Workload, "` is unknown: see the README."])
    end.

pair([Key, Value]) -> {Key, Value};
pair([Text]) -> bad_usage(["The argument `", Text, "` is not of the form key=value."]).

value(Key, Rule, Given) ->
    case Given of
        #{Key := Text} when is_integer(Rule) ->
            case string:to_integer(Text) of
                {Number, ""} when is_integer(Number), Number >= Rule -> Number;
                _ -> bad_usage(io_lib:format("The key `~s` takes a whole number of at least ~b.",
                                             [Key, Rule]))
            end;
        #{Key := Text} ->
            case {lists:member(Text, Rule), Key} of
                {true, _} -> list_to_atom(Text);
                {false, "offender"} -> fail(?NONE);
                _ -> bad_usage(["The key `", Key, "` takes one of: ", lists:join(", ", Rule), "."])
            end;
        _ ->
            bad_usage(["The key `", Key, "` is missing: give it as ", Key, "=VALUE."])
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

%% RssAnon and RssShmem of /proc/self/status.
rss_bytes() ->
    case file:read_file("/proc/self/status") of
        {ok, Status} ->
            {match, Found} = re:run(Status, "Rss(?:Anon|Shmem):\\s*(\\d+)",
                                    [global, {capture, all_but_first, binary}]),
            lists:sum([binary_to_integer(Kilobytes) * 1024 || [Kilobytes] <- Found]);
        {error, _} ->
            fail("/proc/self/status cannot be read: run this on Linux with /proc mounted.")
    end.

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

%% The value in milliseconds that this share of the values (in nanoseconds) does not exceed; 1 gives
%% the greatest.
milliseconds([], _) ->
    0.0;
milliseconds(Values, Share) ->
    Rank = ceil(Share * length(Values)),
    lists:nth(max(Rank, 1), lists:sort(Values)) / 1.0e6.

%% Starts the clock and then every process, after all have parked.
start_all(Pids) ->
    settle(),
    Clock = now_ns(),
    lists:foreach(fun(Pid) -> Pid ! start end, Pids),
    Clock.

%% Long enough for a process that has counted itself started to reach its receive.
settle() ->
    timer:sleep(50).

%% The sizes at which something that grows to N is measured.
sizes(N) ->
    lists:usort([N * Step div 8 || Step <- lists:seq(0, 8)]).

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
    print([{bytes_per_callback, PerOne},
                 {intercept_bytes, Intercept},
                 {r, math:sqrt(max(Squared, 0.0))},
                 {r2, Squared}]).

mean(Values) ->
    lists:sum(Values) / length(Values).
