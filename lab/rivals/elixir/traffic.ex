# `many-to-many`, `fan-in` and `ping-pong`: processes that are parked before the clock starts
# exchange small integers.
defmodule Rival.Traffic do
  @moduledoc "The workloads of processes that exchange small integers."
  import Bitwise
  import Rival.Measure

  # Long enough, in milliseconds, for a process that has counted itself started to reach its
  # receive.
  @settle 50
  @mask 0xFFFFFFFF
  # Above this the arithmetic of next/3 would leave the small integers.
  @most_processes 0x7FFFFFF

  def many_to_many(p, _) when p > @most_processes do
    Rival.fail("The generator takes fewer processes: give processes below 134217728.")
  end

  def many_to_many(p, m) do
    {started, done} = {gate(p), gate(p)}
    expected = :counters.new(p, [])
    pids = for i <- 1..p, do: spawn(fn -> scatter(i, p, m, expected, {started, done}) end)
    :persistent_term.put(__MODULE__, List.to_tuple(pids))
    wait(started)
    clock = start_all(pids)
    wait(done)
    Rival.print(ns_per_message: (now_ns() - clock) / (p * m))
  end

  defp scatter(i, p, m, expected, {started, done}) do
    expect(m, 0, i, p, expected)
    count(started)

    receive do
      :start -> send_to_others(m, 0, i, p, :persistent_term.get(__MODULE__))
    end

    receive_numbers(:counters.get(expected, i))
    count(done)
  end

  # Runs the generator beforehand, so that every process knows how many messages will arrive.
  defp expect(0, _, _, _, _), do: :ok

  defp expect(m, high, low, p, expected) do
    {high, low, target} = next(high, low, p)
    :counters.add(expected, target + 1, 1)
    expect(m - 1, high, low, p, expected)
  end

  defp send_to_others(0, _, _, _, _), do: :ok

  defp send_to_others(m, high, low, p, pids) do
    {high, low, target} = next(high, low, p)
    send(elem(pids, target), m)
    send_to_others(m - 1, high, low, p, pids)
  end

  defp receive_numbers(0), do: :ok

  defp receive_numbers(left) do
    receive do
      number when is_integer(number) -> receive_numbers(left - 1)
    end
  end

  # One step of xorshift64 (shifts 13, 7, 17), and the target. The state is kept as two halves of 32
  # bits, because an integer of 64 bits would be allocated on the heap.
  @compile {:inline, next: 3}
  defp next(high, low, p) do
    high = bxor(high, (high <<< 13 ||| low >>> 19) &&& @mask)
    low = bxor(low, low <<< 13 &&& @mask)
    low = bxor(low, low >>> 7 ||| (high <<< 25 &&& @mask))
    high = bxor(high, high >>> 7)
    high = bxor(high, (high <<< 17 ||| low >>> 15) &&& @mask)
    low = bxor(low, low <<< 17 &&& @mask)
    {high, low, rem(rem(high, p) <<< 32 ||| low, p)}
  end

  def fan_in(senders, messages) do
    {started, done} = {gate(senders + 1), gate(1)}

    receiver =
      :erlang.spawn_opt(
        fn ->
          count(started)
          receive_numbers(senders * messages)
          count(done)
        end,
        message_queue_data: :off_heap
      )

    pids = for _ <- 1..senders, do: spawn(fn -> send_share(receiver, messages, started) end)
    wait(started)
    clock = start_all(pids)
    wait(done)
    Rival.print(ns_per_message: (now_ns() - clock) / (senders * messages))
  end

  defp send_share(receiver, messages, started) do
    count(started)

    receive do
      :start -> send_numbers(messages, receiver)
    end
  end

  defp send_numbers(0, _), do: :ok

  defp send_numbers(left, receiver) do
    send(receiver, left)
    send_numbers(left - 1, receiver)
  end

  # Starts the clock and then every process, after all have parked.
  defp start_all(pids) do
    Process.sleep(@settle)
    clock = now_ns()
    Enum.each(pids, &send(&1, :start))
    clock
  end

  def ping_pong(rounds) do
    done = gate(1)

    ping =
      spawn(fn ->
        receive do
          {:peer, pong} -> ping(pong, done)
        end
      end)

    pong = spawn(fn -> pong(ping) end)
    send(ping, {:peer, pong})
    Process.sleep(@settle)
    clock = now_ns()
    send(ping, rounds)
    wait(done)
    Rival.print(ns_per_round_trip: (now_ns() - clock) / rounds)
  end

  defp ping(pong, done) do
    receive do
      0 ->
        count(done)

      left ->
        send(pong, left - 1)
        ping(pong, done)
    end
  end

  defp pong(ping) do
    receive do
      left -> send(ping, left)
    end

    pong(ping)
  end
end
