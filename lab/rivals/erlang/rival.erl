%% The rival Erlang: reads `WORKLOAD key=value ...`, runs one workload and ends the emulator.
%%
%% Invariants: metrics go to stdout with exit code 0, an error is one sentence on stderr with exit
%% code 1, or 2 for bad usage; `workers` must be the number of schedulers that the emulator was
%% started with (`+S`). Started with `-s rival main -extra ARGUMENTS`.
-module(rival).
-export([main/0, print/1, fail/1]).

-spec main() -> no_return().
main() ->
    Arguments = init:get_plain_arguments(),
    {Main, Monitor} = spawn_monitor(fun() -> run(Arguments) end),
    receive
        {'DOWN', Monitor, process, Main, Reason} ->
            io:format(standard_error, "The workload crashed: ~0p.~n", [Reason]),
            halt(1)
    end.

run([]) ->
    bad_usage("No workload is given: call it as WORKLOAD key=value ..., or with --version.");
run(["--version" | _]) ->
    io:format("Erlang/OTP ~s (erts ~s)~n",
              [erlang:system_info(otp_release), erlang:system_info(version)]),
    halt(0);
run([Workload | Pairs]) ->
    Keys = maps:from_list([pair(string:split(Pair, "=")) || Pair <- Pairs]),
    map_size(Keys) =:= length(Pairs) orelse bad_usage("A key is given twice: give each once."),
    check_workers(number(Keys, "workers", 1)),
    start(Workload, Keys).

pair([Key, Value]) -> {Key, Value};
pair([Text]) -> bad_usage("The argument `" ++ Text ++ "` is not of the form key=value.").

check_workers(Workers) ->
    case erlang:system_info(schedulers_online) of
        Workers -> ok;
        _ -> bad_usage("The emulator has another number of schedulers: start it with +S N:N.")
    end.

start("spawn", Keys) ->
    only(Keys, ["n"]),
    rival_spawn:run(number(Keys, "n", 1));
start("ring", Keys) ->
    only(Keys, ["n", "m", "tokens"]),
    {N, Tokens} = {number(Keys, "n", 1), number(Keys, "tokens", 1)},
    Tokens =< N orelse bad_usage("There are more tokens than processes: give tokens <= n."),
    rival_ring:run(N, number(Keys, "m", 1), Tokens);
start("mailbox", Keys) ->
    only(Keys, ["k", "bytes", "payload"]),
    Payload = word(Keys, "payload", ["shared", "fresh"]),
    rival_mailbox:run(number(Keys, "k", 1), number(Keys, "bytes", 1), Payload);
start("many-to-many", Keys) ->
    only(Keys, ["processes", "messages"]),
    rival_traffic:many_to_many(number(Keys, "processes", 1), number(Keys, "messages", 1));
start("fan-in", Keys) ->
    only(Keys, ["senders", "messages"]),
    rival_traffic:fan_in(number(Keys, "senders", 1), number(Keys, "messages", 1));
start("ping-pong", Keys) ->
    only(Keys, ["rounds"]),
    rival_traffic:ping_pong(number(Keys, "rounds", 1));
start("lifecycle", Keys) ->
    only(Keys, ["n"]),
    rival_processes:lifecycle(number(Keys, "n", 1));
start("call", Keys) ->
    only(Keys, ["rounds", "callee", "timeout"]),
    Timeout = case word(Keys, "timeout", ["yes", "no"]) of yes -> 5000; no -> infinity end,
    Callee = word(Keys, "callee", ["process", "server"]),
    rival_processes:call(number(Keys, "rounds", 1), Callee, Timeout);
start("call-behind-queue", Keys) ->
    only(Keys, ["waiting", "rounds"]),
    rival_processes:call_behind_queue(number(Keys, "waiting", 0), number(Keys, "rounds", 1));
start("broadcast", Keys) ->
    only(Keys, ["members", "rounds"]),
    rival_processes:broadcast(number(Keys, "members", 1), number(Keys, "rounds", 1));
start("burst-send", Keys) ->
    only(Keys, ["receivers", "cores", "messages"]),
    {Receivers, Messages} = {number(Keys, "receivers", 1), number(Keys, "messages", 1)},
    rival_measure:bind_to_processors(number(Keys, "cores", 1)),
    rival_traffic:burst_send(Receivers, (Messages + Receivers - 1) div Receivers);
start("stall", Keys) ->
    only(Keys, ["offender", "offenders", "burst", "seconds", "pingers"]),
    Offender = word(Keys, "offender", ["none", "blocks", "computes", "holds", "just-below"]),
    Burst = word(Keys, "burst", ["no", "yes"]),
    {Offenders, Pingers} = {number(Keys, "offenders", 0), number(Keys, "pingers", 0)},
    rival_stall:run(Offender, Offenders, Burst, number(Keys, "seconds", 1), Pingers);
start("handoff", Keys) ->
    only(Keys, ["rounds"]),
    rival_stall:handoff(number(Keys, "rounds", 1));
start("callbacks", Keys) ->
    only(Keys, ["n", "kind"]),
    rival_sleeping:run(number(Keys, "n", 1), word(Keys, "kind", ["once", "loop"]));
start(Workload, _) ->
    bad_usage("The workload `" ++ Workload ++ "` is unknown: see the README.").

only(Keys, Known) ->
    case maps:keys(Keys) -- ["workers" | Known] of
        [] -> ok;
        [Key | _] ->
            bad_usage("The key `" ++ Key ++ "` does not belong to this workload: leave it out.")
    end.

take(Keys, Key) ->
    case Keys of
        #{Key := Value} -> Value;
        _ -> bad_usage("The key `" ++ Key ++ "` is missing: give it as " ++ Key ++ "=VALUE.")
    end.

number(Keys, Key, Least) ->
    case string:to_integer(take(Keys, Key)) of
        {Number, ""} when is_integer(Number), Number >= Least -> Number;
        _ ->
            bad_usage(io_lib:format("The key `~s` takes a whole number of at least ~b.",
                                    [Key, Least]))
    end.

word(Keys, Key, Allowed) ->
    Value = take(Keys, Key),
    case lists:member(Value, Allowed) of
        true -> list_to_atom(Value);
        false ->
            bad_usage(["The key `", Key, "` takes one of: ", lists:join(", ", Allowed), "."])
    end.

%% Prints one line per metric and ends the emulator.
-spec print([{string(), number()}]) -> no_return().
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
