# What the workloads measure with: the clock, resident memory, a shared counter, and the lateness of
# events.
defmodule Rival.Measure do
  @moduledoc "Clock, memory and counters of the rival."

  @doc "Monotonic time in nanoseconds."
  def now_ns, do: System.monotonic_time(:nanosecond)

  @doc "RssAnon and RssShmem of /proc/self/status, in bytes."
  def rss_bytes do
    case File.read("/proc/self/status") do
      {:ok, status} ->
        ~r/Rss(?:Anon|Shmem):\s*(\d+)/
        |> Regex.scan(status, capture: :all_but_first)
        |> Enum.map(fn [kilobytes] -> String.to_integer(kilobytes) * 1024 end)
        |> Enum.sum()

      {:error, _} ->
        Rival.fail("/proc/self/status cannot be read: run this on Linux with /proc mounted.")
    end
  end

  @doc "A counter that sends its creator a message when it is full."
  def gate(full), do: {:atomics.new(1, []), full, self(), make_ref()}

  @doc "Counts one."
  def count({counter, full, maker, ref}) do
    if :atomics.add_get(counter, 1, 1) == full, do: send(maker, ref)
    :ok
  end

  @doc "Waits until the gate is full; only its creator may call it."
  def wait({_, _, _, ref}) do
    receive do
      ^ref -> :ok
    end
  end

  @doc "The value in milliseconds that this share of the values does not exceed; 1 gives the greatest."
  def milliseconds([], _), do: 0.0

  def milliseconds(values, share) do
    rank = ceil(share * length(values))
    Enum.at(Enum.sort(values), max(rank, 1) - 1) / 1.0e6
  end
end
