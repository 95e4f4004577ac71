# The rival Elixir: workloads of messages as Elixir's users write them. The command line, the clock, memory, the counters, and
# the programs of `stall`, `handoff` and `callbacks` are those of the rival Erlang, which is compiled beside it.
#
# Started with `-e "Rival.main(System.argv())" -- ARGUMENTS`.
defmodule Rival do
  @moduledoc "The workloads of processes and messages."
  import Bitwise
  import :rival, except: [main: 0, main: 3, programs: 0]

  @longest_copied 64
  @mask 0xFFFFFFFF
  # Above this the arithmetic of next/3 would leave the small integers.
  @most_processes 0x7FFFFFF

  @doc "Runs the workload that the arguments name."
  def main(arguments) do
    version = "Elixir #{System.version()} (Erlang/OTP #{System.otp_release()})"
    :rival.main(Enum.map(arguments, &to_charlist/1), version, programs())
  end

  # The keys are Erlang's. Its programs also run what depends on the emulator alone, whichever language starts it.
  defp programs do
    own = %{
      ~c"spawn" => :live_and_die,
      ~c"ring" => :ring,
      ~c"mailbox" => :mailbox,
      ~c"many-to-many" => :many_to_many,
      ~c"fan-in" => :fan_in,
      ~c"ping-pong" => :ping_pong
    }

    shared = Map.take(:rival.programs(), [~c"stall", ~c"handoff", ~c"callbacks"])
    named = fn name, function -> {Rival, function, elem(:rival.programs()[name], 2)} end
    Map.merge(shared, Map.new(own, fn {name, function} -> {name, named.(name, function)} end))
  end

  # How long a process takes to start and to end, and how much memory it holds while it waits. No list of pids is kept while
  # memory is measured; the emulator lists them before the teardown.
  def live_and_die(n) do
    limit = :erlang.system_info(:process_limit)
    if n >= limit, do: fail("The emulator allows #{limit} processes: raise it with +P.")
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
    print(ns_per_spawn: spawning / n, ns_per_teardown: ending / n, bytes_per_process: grown / n)
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

  # Tokens go round a ring of processes, each of which knows only its neighbour.
  def ring(n, _, tokens) when tokens > n do
    fail("There are more tokens than processes: give tokens <= n.")
  end

  def ring(n, m, tokens) do
    {started, arrived} = {gate(n), gate(tokens)}
    setup = now_ns()

    # The ring is built backwards: the last process is spawned first and gets the first one's pid at the end.
    last = spawn(fn -> wait_for_neighbour(started, arrived) end)
    pids = build(n - 1, [last], started, arrived)
    send(last, {:neighbour, hd(pids)})
    nodes = List.to_tuple(pids)
    wait(started)
    clock = now_ns()
    for token <- 0..(tokens - 1), do: send(elem(nodes, div(token * n, tokens)), n * m)
    wait(arrived)
    ended = now_ns()
    print(ns_per_hop: (ended - clock) / (n * m * tokens), ms_with_setup: (ended - setup) / 1.0e6)
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

  # One process sends itself messages and then receives them all; the rival Erlang says why a text is copied, and when.
  def mailbox(k, bytes, payload) do
    original = String.duplicate("x", bytes)
    :persistent_term.put(__MODULE__, original)
    # A persistent term is a literal to the processes that get it: messages refer to it.
    text = if payload == :shared, do: :persistent_term.get(__MODULE__), else: original
    Process.flag(:message_queue_data, :off_heap)
    rss_before = rss_bytes()
    clock = now_ns()

    if payload == :fresh and bytes > @longest_copied,
      do: send_copies(k, text),
      else: send_all(k, text)

    sending = now_ns() - clock
    grown = max(rss_bytes() - rss_before, 0)
    clock = now_ns()
    receive_all(k)
    receiving = now_ns() - clock
    print(ns_per_send: sending / k, ns_per_receive: receiving / k, bytes_per_message: grown / k)
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

  def many_to_many(p, _) when p > @most_processes do
    fail("The generator takes fewer processes: give processes below 134217728.")
  end

  def many_to_many(p, m) do
    {started, done} = {gate(p), gate(p)}
    expected = :counters.new(p, [])
    pids = for i <- 1..p, do: spawn(fn -> scatter(i, p, m, expected, {started, done}) end)
    :persistent_term.put(__MODULE__, List.to_tuple(pids))
    wait(started)
    clock = start_all(pids)
    wait(done)
    print(ns_per_message: (now_ns() - clock) / (p * m))
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
    print(ns_per_message: (now_ns() - clock) / (senders * messages))
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
    settle()
    clock = now_ns()
    send(ping, rounds)
    wait(done)
    print(ns_per_round_trip: (now_ns() - clock) / rounds)
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
