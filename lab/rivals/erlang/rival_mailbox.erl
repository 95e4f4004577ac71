%% `mailbox`: one process sends itself messages and then receives them all.
%%
%% Invariants: with a shared text the queue is on the heap, where a message to oneself is not
%% copied; with fresh texts it is off the heap, where every message is copied, and with it a text of
%% up to 64 bytes. A longer one, which the emulator would share, is copied by hand.
-module(rival_mailbox).
-export([run/3]).

-define(LONGEST_COPIED, 64).

run(K, Bytes, Payload) ->
    Text = binary:copy(<<"x">>, Bytes),
    process_flag(message_queue_data, queue(Payload)),
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

queue(shared) -> on_heap;
queue(fresh) -> off_heap.

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
