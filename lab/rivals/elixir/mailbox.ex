# `mailbox`: one process sends itself messages and then receives them all.
#
# Invariants: the queue is off the heap, because every garbage collection scans one on the heap. Off
# the heap every message is copied, and with it a text of up to 64 bytes unless it is a literal, which
# the shared one is. The emulator would share a longer fresh text, so that one is copied
# explicitly.
defmodule Rival.Mailbox do
  @moduledoc "The workload `mailbox`."
  import Rival.Measure

  @longest_copied 64

  def run(k, bytes, payload) do
    original = String.duplicate("x", bytes)
    :persistent_term.put(__MODULE__, original)
    # A persistent term is a literal to the processes that get it: messages refer to it.
    text = if payload == "shared", do: :persistent_term.get(__MODULE__), else: original
    Process.flag(:message_queue_data, :off_heap)
    rss_before = rss_bytes()
    clock = now_ns()

    if payload == "fresh" and bytes > @longest_copied,
      do: send_copies(k, text),
      else: send_all(k, text)

    sending = now_ns() - clock
    grown = max(rss_bytes() - rss_before, 0)
    clock = now_ns()
    receive_all(k)
    receiving = now_ns() - clock

    Rival.print(
      ns_per_send: sending / k,
      ns_per_receive: receiving / k,
      bytes_per_message: grown / k
    )
  end

  defp send_all(0, _), do: :ok

  defp send_all(k, text) do
    send(self(), {text, k, k + 1, k * 0.5})
    send_all(k - 1, text)
  end

  defp send_copies(0, _), do: :ok

  defp send_copies(k, text) do
    send(self(), {:binary.copy(text), k, k + 1, k * 0.5})
    send_copies(k - 1, text)
  end

  defp receive_all(0), do: :ok

  defp receive_all(k) do
    receive do
      {_, _, _, _} -> receive_all(k - 1)
    end
  end
end
