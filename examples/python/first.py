"""A process that doubles numbers: the first program of the book's page on C and other languages."""

import weald

answers = weald.Channel(None)


def double():
    try:
        while True:
            answers.send(b"%d" % (2 * int(weald.receive())))
    except weald.Cancelled:
        return 0


process = weald.spawn(double, name="doubler")
for number in range(1, 4):
    process.send(b"%d" % number)
print([int(answers.receive()) for _ in range(3)])
process.cancel()
process.wait()
