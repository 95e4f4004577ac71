%% `mailbox`: one process sends itself messages and then receives them all.
%%
%% Invariants: the queue is off the heap, because every garbage collection scans one on the heap. Off
%% the heap every message is copied, and with it a text of up to 64 bytes unless it is a literal, which
%% the shared one is. The emulator would share a longer fresh text, so that one is copied
%% explicitly.
-module(rival_mailbox).
-export([run/3]).

-define(LONGEST_COPIED, 64).

run(K, Bytes, Payload) ->
    Original = binary:copy(<<"x">>, Bytes),
    persistent_term:put(?MODULE, Original),
    Text = text(Payload, Original),
    process_flag(message_queue_data, off_heap),
    RssBefore = rival_measure:rss_bytes(),
    SendClock = rival_measure:now_ns(),
    case Payload of
        fresh when Bytes > ?LONGEST_COPIED -> send_copies(K, Text);
        _ -> send(K, Text)
    end,
    Sending = rival_measure:now_ns() - SendClock,
    Grown = max(rival_measure:rss_bytes() - RssBefore, 0),
    ReceiveClock = rival_measure:now_ns(),
    receive_all(K),
    Receiving = rival_measure:now_ns() - ReceiveClock,
    rival:print([{"ns_per_send", Sending / K},
                 {"ns_per_receive", Receiving / K},
                 {"bytes_per_message", Grown / K}]).

%% A persistent term is a literal to the processes that get it: messages refer to it.
text(shared, _) -> persistent_term:get(?MODULE);
text(fresh, Original) -> Original.

send(0, _) ->
    ok;
send(K, Text) ->
    self() ! {Text, K, K + 1, K * 0.5},
    send(K - 1, Text).

send_copies(0, _) ->
    ok;
send_copies(K, Text) ->
    self() ! {binary:copy(Text), K, K + 1, K * 0.5},
    send_copies(K - 1, Text).

receive_all(0) ->
    ok;
receive_all(K) ->
    receive {_, _, _, _} -> receive_all(K - 1) end.
