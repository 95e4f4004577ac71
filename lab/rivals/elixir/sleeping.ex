# `callbacks`: processes that sleep, which is Elixir's means for code that runs later and can end
# on its own.
defmodule Rival.Sleeping do
  @moduledoc "The workload `callbacks`."
  import Rival.Measure

  @hour 3_600_000
  @settle 20

  def run(n, kind) do
    sizes = Enum.uniq(for step <- 0..8, do: div(n * step, 8))
    {points, _} = Enum.map_reduce(sizes, 0, &{measure(&1, &2, kind), &1})
    print_line(points)
  end

  defp measure(size, started, kind) do
    start(size - started, started, kind)
    Process.sleep(@settle)
    {size, rss_bytes()}
  end

  defp start(0, _, _), do: :ok

  defp start(count, index, "once") do
    spawn(fn -> once(index, index) end)
    start(count - 1, index + 1, "once")
  end

  defp start(count, index, "loop") do
    spawn(fn -> loop(index) end)
    start(count - 1, index + 1, "loop")
  end

  defp once(first, second) do
    Process.sleep(@hour)
    first + second
  end

  defp loop(index) do
    Process.sleep(@hour)
    loop(index)
  end

  # Prints the least-squares line through numbers of processes and resident memories.
  defp print_line(points) do
    {middle, level} = {mean(points, &elem(&1, 0)), mean(points, &elem(&1, 1))}
    along = mean(points, fn {x, y} -> (x - middle) * (y - level) end)
    per_one = along / mean(points, fn {x, _} -> (x - middle) * (x - middle) end)
    intercept = level - per_one * middle
    width = mean(points, fn {_, y} -> (y - level) * (y - level) end)
    beside = mean(points, fn {x, y} -> :math.pow(y - intercept - per_one * x, 2) end)
    squared = if width > 0, do: 1 - beside / width, else: 1.0

    Rival.print(
      bytes_per_callback: per_one,
      intercept_bytes: intercept,
      r: :math.sqrt(max(squared, 0.0)),
      r2: squared
    )
  end

  defp mean(points, value), do: Enum.sum(Enum.map(points, value)) / length(points)
end
