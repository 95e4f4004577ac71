%% What the workloads measure with: the clock, resident memory, a shared counter, and the lateness
%% of events.
-module(rival_measure).
-export([now_ns/0, rss_bytes/0, bind_to_processors/1, gate/1, count/1, wait/1, milliseconds/2]).
-export_type([gate/0]).

-opaque gate() :: {atomics:atomics_ref(), pos_integer(), pid(), reference()}.

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
            rival:fail("/proc/self/status cannot be read: run this on Linux with /proc mounted.")
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
        _ -> rival:fail("The processors cannot be chosen: install taskset, of util-linux.")
    end.

numbers(Range) ->
    case [list_to_integer(Text) || Text <- string:tokens(Range, "-")] of
        [From, To] -> lists:seq(From, To);
        [One] -> [One]
    end.

%% A counter that sends its creator a message when it is full.
-spec gate(pos_integer()) -> gate().
gate(Full) ->
    {atomics:new(1, []), Full, self(), make_ref()}.

-spec count(gate()) -> ok.
count({Counter, Full, Maker, Ref}) ->
    case atomics:add_get(Counter, 1, 1) of
        Full -> Maker ! Ref, ok;
        _ -> ok
    end.

-spec wait(gate()) -> ok.
wait({_, _, _, Ref}) ->
    receive Ref -> ok end.

%% The value in milliseconds that this share of the values (in nanoseconds) does not exceed; 1 gives
%% the greatest.
milliseconds([], _) ->
    0.0;
milliseconds(Values, Share) ->
    Rank = ceil(Share * length(Values)),
    lists:nth(max(Rank, 1), lists:sort(Values)) / 1.0e6.
