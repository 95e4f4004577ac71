# `spawn`: how long a process takes to start and to end, and how much memory it holds while it
# waits.
#
# Invariant: no list of pids is kept while memory is measured; the emulator lists them before the
# teardown.
defmodule Rival.Spawn do
  @moduledoc "The workload `spawn`."
  import Rival.Measure

  def run(n) do
    limit = :erlang.system_info(:process_limit)
    if n >= limit, do: Rival.fail("The emulator allows #{limit} processes: raise it with +P.")
    {started, ended} = {gate(n), gate(n)}
    others = Process.list()
    rss_before = rss_bytes()
    clock = now_ns()
    spawn_all(n, started, ended)
    wait(started)
    spawning = now_ns() - clock
    grown = max(rss_bytes() - rss_before, 0)
    pids = Process.list() -- others
    clock = now_ns()
    Enum.each(pids, &send(&1, :die))
    wait(ended)
    wait_until_gone(length(others))
    ending = now_ns() - clock

    Rival.print(
      ns_per_spawn: spawning / n,
      ns_per_teardown: ending / n,
      bytes_per_process: grown / n
    )
  end

  defp spawn_all(0, _, _), do: :ok

  defp spawn_all(n, started, ended) do
    spawn(fn -> live(started, ended) end)
    spawn_all(n - 1, started, ended)
  end

  defp live(started, ended) do
    count(started)

    receive do
      :die -> count(ended)
    end
  end

  defp wait_until_gone(others) do
    if :erlang.system_info(:process_count) > others do
      :erlang.yield()
      wait_until_gone(others)
    end
  end
end
