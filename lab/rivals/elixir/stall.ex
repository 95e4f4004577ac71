# `stall` and `handoff`: what happens to the others when one process does not yield.
defmodule Rival.Stall do
  @moduledoc "The workloads `stall` and `handoff`."
  import Bitwise
  import Rival.Measure

  @tick 5
  @pause 20
  @offence 300
  @handoff_work 50
  @ms 1_000_000
  # Counters of 8 bytes per cache line, so that pairs do not share one.
  @spacing 8

  def blocks do
    Rival.fail("Elixir code cannot block the OS thread it runs on: use offender=computes.")
  end

  def run(%{offender: offender, offenders: offenders, seconds: seconds, pingers: pingers}) do
    pairs = div(pingers, 2)
    counters = :counters.new(max(pairs, 1) * @spacing, [])
    for pair <- indices(pairs), do: start_pair(counters, pair)
    if offender == "computes", do: for(_ <- indices(offenders), do: spawn(&offend/0))
    ticker = Task.async(fn -> tick(seconds * 1000 * @ms, counters, pairs) end)
    Rival.print(Task.await(ticker, :infinity))
  end

  defp indices(count), do: 1..count//1

  defp tick(length, counters, pairs) do
    clock = now_ns()
    before = total(counters, pairs)
    lateness = tick_until(clock + length, [])
    {hops, running} = {total(counters, pairs) - before, now_ns() - clock}

    [
      ticks: length(lateness),
      lateness_p999_ms: milliseconds(lateness, 0.999),
      lateness_worst_ms: milliseconds(lateness, 1)
    ] ++ if(hops > 0, do: [ns_per_hop: running / hops], else: [])
  end

  defp tick_until(ending, lateness) do
    start = now_ns()

    if start >= ending do
      lateness
    else
      Process.sleep(@tick)
      tick_until(ending, [now_ns() - start - @tick * @ms | lateness])
    end
  end

  defp total(counters, pairs) do
    indices(pairs) |> Enum.map(&:counters.get(counters, &1 * @spacing)) |> Enum.sum()
  end

  defp start_pair(counters, pair) do
    ping =
      spawn(fn ->
        receive do
          {:peer, pong} -> ping(pong, counters, pair * @spacing)
        end
      end)

    pong = spawn(fn -> pong(ping) end)
    send(ping, {:peer, pong})
    send(ping, 0)
  end

  defp ping(pong, counters, index) do
    receive do
      number ->
        :counters.put(counters, index, number)
        send(pong, number + 2)
    end

    ping(pong, counters, index)
  end

  defp pong(ping) do
    receive do
      number -> send(ping, number)
    end

    pong(ping)
  end

  defp offend do
    Process.sleep(@pause)
    compute_until(now_ns() + @offence * @ms)
    offend()
  end

  # Arithmetic without waiting; the state stays within the small integers.
  defp compute_until(ending) do
    compute(1000, 7)
    if now_ns() < ending, do: compute_until(ending)
  end

  defp compute(0, state), do: state
  defp compute(left, state), do: compute(left - 1, state * 2017 + 2020 &&& 0xFFFFFFFF)

  def handoff(rounds) do
    measured =
      Task.async(fn ->
        waker = self()
        woken = spawn(fn -> answer(waker) end)
        for _ <- 1..rounds, do: wake_and_compute(woken)
      end)

    lateness = Task.await(measured, :infinity)

    Rival.print(
      lateness_worst_ms: milliseconds(lateness, 1),
      lateness_p50_ms: milliseconds(lateness, 0.5)
    )
  end

  defp answer(waker) do
    receive do
      sent -> send(waker, {:late, now_ns() - sent})
    end

    answer(waker)
  end

  defp wake_and_compute(woken) do
    # Waits for a timer first, as in every rival.
    Process.sleep(@tick)
    send(woken, now_ns())
    compute_until(now_ns() + @handoff_work * @ms)

    receive do
      {:late, late} -> late
    end
  end
end
