# The rival Elixir: reads `WORKLOAD key=value ...`, runs one workload and ends the emulator.
#
# Invariants: metrics go to stdout with exit code 0, an error is one sentence on stderr with exit
# code 1, or 2 for bad usage; `workers` must be the number of schedulers that the emulator was
# started with (`+S`). Started with `-e "Rival.main(System.argv())" -- ARGUMENTS`.
defmodule Rival do
  @moduledoc "The command line of the rival."

  @workloads %{
    "spawn" => [n: 1],
    "ring" => [n: 1, m: 1, tokens: 1],
    "mailbox" => [k: 1, bytes: 1, payload: ~w(shared fresh)],
    "many-to-many" => [processes: 1, messages: 1],
    "fan-in" => [senders: 1, messages: 1],
    "ping-pong" => [rounds: 1],
    "callbacks" => [n: 1, kind: ~w(once loop)],
    "stall" => [
      offender: ~w(none blocks computes),
      offenders: 0,
      burst: ~w(no),
      seconds: 1,
      pingers: 0
    ],
    "handoff" => [rounds: 1]
  }

  @doc "Runs the workload that the arguments name."
  def main([]),
    do: bad_usage("No workload is given: call it as WORKLOAD key=value ..., or with --version.")

  def main(["--version" | _]) do
    IO.puts("Elixir #{System.version()} (Erlang/OTP #{System.otp_release()})")
    System.halt(0)
  end

  def main([workload | pairs]) do
    known =
      @workloads[workload] || bad_usage("The workload `#{workload}` is unknown: see the README.")

    arguments = read(pairs, [{:workers, 1} | known])

    if arguments.workers != System.schedulers_online() do
      bad_usage("The emulator has another number of schedulers: start it with +S N:N.")
    end

    # A process of its own, because the one that evaluates the command line also receives the code
    # server's messages.
    {pid, monitor} = spawn_monitor(fn -> run(workload, arguments) end)

    receive do
      {:DOWN, ^monitor, :process, ^pid, reason} ->
        fail("The workload crashed: #{inspect(reason)}.")
    end
  end

  @doc "Prints one line per metric and ends the emulator."
  def print(metrics) do
    for {name, value} <- metrics,
        do: IO.puts("#{name} #{:erlang.float_to_binary(value / 1, decimals: 3)}")

    System.halt(0)
  end

  @doc "Ends the emulator because the rival cannot do what was asked."
  def fail(sentence) do
    IO.puts(:stderr, sentence)
    System.halt(1)
  end

  defp bad_usage(sentence) do
    IO.puts(:stderr, sentence)
    System.halt(2)
  end

  defp read(pairs, known) do
    given = Map.new(pairs, &pair/1)
    if map_size(given) != length(pairs), do: bad_usage("A key is given twice: give each once.")

    for {key, _} <- given, not Enum.any?(known, fn {name, _} -> to_string(name) == key end) do
      bad_usage("The key `#{key}` does not belong to this workload: leave it out.")
    end

    Map.new(known, fn {name, rule} -> {name, value(name, given[to_string(name)], rule)} end)
  end

  defp pair(text) do
    case String.split(text, "=", parts: 2) do
      [key, value] -> {key, value}
      _ -> bad_usage("The argument `#{text}` is not of the form key=value.")
    end
  end

  defp value(name, nil, _),
    do: bad_usage("The key `#{name}` is missing: give it as #{name}=VALUE.")

  defp value(name, text, least) when is_integer(least) do
    case Integer.parse(text) do
      {number, ""} when number >= least -> number
      _ -> bad_usage("The key `#{name}` takes a whole number of at least #{least}.")
    end
  end

  defp value(name, text, allowed) do
    if text in allowed,
      do: text,
      else: bad_usage("The key `#{name}` takes one of: #{Enum.join(allowed, ", ")}.")
  end

  defp run("spawn", %{n: n}), do: Rival.Spawn.run(n)

  defp run("mailbox", %{k: k, bytes: bytes, payload: payload}),
    do: Rival.Mailbox.run(k, bytes, payload)

  defp run("many-to-many", %{processes: p, messages: m}), do: Rival.Traffic.many_to_many(p, m)
  defp run("fan-in", %{senders: senders, messages: m}), do: Rival.Traffic.fan_in(senders, m)
  defp run("ping-pong", %{rounds: rounds}), do: Rival.Traffic.ping_pong(rounds)
  defp run("callbacks", %{n: n, kind: kind}), do: Rival.Sleeping.run(n, kind)
  defp run("stall", %{offender: "blocks"}), do: Rival.Stall.blocks()
  defp run("stall", arguments), do: Rival.Stall.run(arguments)
  defp run("handoff", %{rounds: rounds}), do: Rival.Stall.handoff(rounds)

  defp run("ring", %{n: n, m: m, tokens: tokens}) do
    if tokens > n, do: bad_usage("There are more tokens than processes: give tokens <= n.")
    Rival.Ring.run(n, m, tokens)
  end
end
