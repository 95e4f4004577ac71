# `ring`: tokens go round a ring of processes, each of which knows only its neighbour.
defmodule Rival.Ring do
  @moduledoc "The workload `ring`."
  import Rival.Measure

  def run(n, m, tokens) do
    {started, arrived} = {gate(n), gate(tokens)}
    setup = now_ns()

    # The ring is built backwards: the last process is spawned first and gets the first one's pid at
    # the end.
    last = spawn(fn -> wait_for_neighbour(started, arrived) end)
    pids = build(n - 1, [last], started, arrived)
    send(last, {:neighbour, hd(pids)})
    nodes = List.to_tuple(pids)
    wait(started)
    clock = now_ns()
    for token <- 0..(tokens - 1), do: send(elem(nodes, div(token * n, tokens)), n * m)
    wait(arrived)
    ended = now_ns()

    Rival.print(
      ns_per_hop: (ended - clock) / (n * m * tokens),
      ms_with_setup: (ended - setup) / 1.0e6
    )
  end

  defp build(0, pids, _, _), do: pids

  defp build(left, [neighbour | _] = pids, started, arrived) do
    pid = spawn(fn -> pass(neighbour, started, arrived) end)
    build(left - 1, [pid | pids], started, arrived)
  end

  defp wait_for_neighbour(started, arrived) do
    receive do
      {:neighbour, first} -> pass(first, started, arrived)
    end
  end

  defp pass(neighbour, started, arrived) do
    count(started)
    loop(neighbour, arrived)
  end

  # The number in a token is how many hops it has left.
  defp loop(neighbour, arrived) do
    receive do
      0 -> count(arrived)
      hops -> send(neighbour, hops - 1)
    end

    loop(neighbour, arrived)
  end
end
