"""A `suite` command that goes wrong as asked in one rank: faulty.py FAULT RANK ITERATION ARGUMENTS...

Rank 0 of a run in one process is that process.

The process of that rank is the suite's own but for the fault; so are its launcher and all the others.
"""

import math
import os
import sys
import time

WORDS, ARGUMENTS = sys.argv[1:4], sys.argv[4:]
FAULT, RANK, ITERATION = WORDS[0], int(WORDS[1]), int(WORDS[2])


def pass_on() -> None:
    """Ranks run this program too."""
    from suite.world import launch as module

    real = module.launch
    module.launch = lambda config, command, *rest: real(config, [command[0], __file__, *WORDS, *command[3:]], *rest)


def go_wrong() -> None:
    import torch

    from suite.train import exchange, loop

    trainer, taker = loop.Trainer, exchange.GradientExchange
    trains = {}
    compute, take, read, build, method = (
        trainer._compute,
        taker._take,
        loop.load_dataset,
        loop.build_model,
        loop.build_method,
    )

    def computing(self, position, number):
        trains["iteration"] = self.iteration
        if self.iteration == ITERATION:
            if FAULT == "raise":
                raise RuntimeError("broken on purpose")
            if FAULT == "clock":
                real = time.time
                time.time = lambda: real() - 3600
            while FAULT == "loop":
                pass
        return compute(self, position, number)

    def taking(self, parameter, number):
        past = trains.get("iteration", 0) - ITERATION
        if number == 1 and (past == 0 or FAULT == "nan for good" and past > 0):
            parameter.grad.view(-1)[-1] = math.inf if FAULT == "inf" else math.nan
        take(self, parameter, number)

    def in_another_order(*arguments):
        model = build(*arguments)
        name = next(iter(model._modules))
        model._modules[name] = model._modules.pop(name)
        return model

    trainer._compute = computing
    if FAULT in ("nan", "inf", "nan for good"):
        taker._take = taking
    elif FAULT == "order":
        loop.build_model = in_another_order
    elif FAULT == "density":
        loop.build_method = lambda settings, costs: method(settings.model_copy(update={"density": 0.1}), costs)
    elif FAULT == "samples":
        fewer = {"max_train_tokens": 700}
        loop.load_dataset = lambda config: read(
            config.model_copy(update={"data": config.data.model_copy(update=fewer)})
        )
    torch.set_num_threads(1)


if __name__ == "__main__":
    from suite.cli.app import main

    sys.argv = ["suite", *ARGUMENTS]
    pass_on()
    if int(os.environ.get("SUITE_RANK", 0)) == RANK:
        go_wrong()
    main()
