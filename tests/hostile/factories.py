"""Ill-mannered factories, a row each: what a user's file may do to the process that probes it.

A row is the text of a user's file, `NAME.py` with a `build(depth)`; `write` puts all into a folder, this file beside
them for its tiny model. `cd FOLDER && stabkit probe NAME:build --depths 2,4,6 --seeds 0 --quick` tries one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from textwrap import indent

import torch
from torch import nn
from torch.nn import functional

RESULT, LINE, SAME = "result", "one line", "same"
"""A stored cell; a failure in one line; the same cells whatever ran before and with any number of workers."""
WIDTH, WORDS = 16, 20


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 32), nn.GELU(), nn.Linear(32, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h, size = self.one(x), x.shape[1]
        hidden = torch.ones(size, size, dtype=torch.bool).triu(1)
        x = x + self.attention(h, h, h, attn_mask=hidden, need_weights=False)[0]
        return x + self.feed(self.two(x))


class Gpt(nn.Module):
    """A Pre-LN decoder of `depth` blocks."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.embed, self.norm, self.head = nn.Embedding(WORDS, WIDTH), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)
        self.blocks = nn.ModuleList(Block() for _ in range(depth))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def text(step: int) -> torch.Tensor:
    return torch.randint(WORDS, (4, 8), generator=torch.Generator().manual_seed(step))


def next_word(model: nn.Module, step: int = 0) -> torch.Tensor:
    tokens = text(step)
    return functional.cross_entropy(model(tokens)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def scale(model: nn.Module, by: float | torch.Tensor) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= by


PRELUDE = """\
import atexit, builtins, collections, concurrent.futures, ctypes, functools, gc, itertools, json, locale
import logging, multiprocessing, os, random, resource, signal, socket, subprocess, sys, tempfile, threading, time
import warnings
from threading import Thread
import numpy as np
from torch.optim import LBFGS, SGD, AdamW
from torch.optim.lr_scheduler import LambdaLR
from factories import *
"""
NAP = "subprocess.Popen(['sleep', '777']"


@dataclass(frozen=True, slots=True)
class Row:
    """One factory; `body` stands between `model, loss = Gpt(depth), next_word` and `return model, loss`, `top` before
    the function, and alone where there is no body."""

    name: str
    does: str
    expected: str
    body: str = ""
    top: str = ""
    place: bool = True
    """Whether a failure's line can name this file and a line of it."""
    hangs: bool = False

    @property
    def source(self) -> str:
        inner = f"model, loss = Gpt(depth), next_word\n{self.body}\nreturn model, loss\n"
        return f"{PRELUDE}{self.top}\n" + (f"\ndef build(depth):\n{indent(inner, '    ')}" if self.body else "")


def write(folder: Path) -> None:
    """All files of users."""
    (folder / "factories.py").write_bytes(Path(__file__).read_bytes())
    for row in ROWS:
        (folder / f"{row.name}.py").write_text(row.source, encoding="utf-8", errors="surrogateescape")


# fmt: off
ROWS = (
    Row("plain", "Nothing wrong: what the others must not change.", SAME, "pass"),
    # keeps state between calls
    Row("class_counter", "A class-level counter scales the initial weights.", SAME,
        "Count.n += 1; scale(model, Count.n)", "class Count:\n    n = 0"),
    Row("module_counter", "A module-level counter scales the initial weights.", SAME,
        "CALLS.append(depth); scale(model, len(CALLS))", "CALLS = []"),
    Row("cached_head", "A cached head is shared by all models of the process.", SAME,
        "model.head = head()", "head = functools.cache(lambda: nn.Linear(WIDTH, WORDS))"),
    Row("own_generator", "Draws from a generator of the module.", SAME,
        "scale(model, 1 + torch.rand((), generator=CHANCE))", "CHANCE = torch.Generator().manual_seed(0)"),
    Row("torch_at_import", "Draws from torch's chance at import.", SAME, "scale(model, BY)", "BY = 1 + torch.rand(())"),
    Row("numpy_at_import", "Draws from numpy's chance at import.", SAME, "scale(model, BY)",
        "BY = 1 + np.random.rand()"),
    Row("python_at_import", "Draws from Python's chance at import.", SAME, "scale(model, BY)",
        "BY = 1 + random.random()"),
    Row("order_of_set", "Scales by the first of a set of words, whose order hangs on the hash seed.", SAME,
        "scale(model, len(next(iter({'a', 'bb', 'ccc', 'dddd', 'eeeee', 'ffffff'}))))"),
    Row("name_in_environ", "Leaves a counter in the environment.", SAME,
        "os.environ['N'] = str(int(os.environ.get('N', 0)) + 1); scale(model, int(os.environ['N']))"),
    # changes global state of torch
    Row("dtype_at_4", "Sets the default dtype at one depth.", SAME,
        "if depth == 4: torch.set_default_dtype(torch.float64)\nmodel = Gpt(depth)"),
    Row("device_cpu_at_2", "Sets the default device at one depth.", SAME,
        "if depth == 2: torch.set_default_device('cpu')"),
    Row("device_meta_at_4", "Sets the default device to meta at one depth.", SAME,
        "if depth == 4: torch.set_default_device('meta')\nmodel = Gpt(depth)"),
    Row("grad_off_at_2", "Leaves gradients off at one depth.", SAME, "if depth == 2: torch.set_grad_enabled(False)"),
    Row("inference_mode", "Enters inference mode at one depth and never leaves it.", SAME,
        "if depth == 2: MODE.__enter__()", "MODE = torch.inference_mode()"),
    Row("four_threads", "Asks for four threads.", SAME, "torch.set_num_threads(4)"),
    Row("seed_at_import", "Seeds torch at import and draws.", SAME, "scale(model, BY)",
        "torch.manual_seed(5); BY = 1 + torch.rand(())"),
    Row("seeds_left", "Leaves every seed changed.", SAME,
        "random.seed(depth); np.random.seed(depth); torch.manual_seed(depth + 7)"),
    Row("seeding_patched", "Replaces what seeds by what does not, at one depth.", SAME,
        "if depth == 2: torch.manual_seed = random.seed = np.random.seed = lambda *a: None\nmodel = Gpt(depth)"),
    Row("deterministic", "Switches deterministic algorithms on at one depth.", SAME,
        "if depth == 2: torch.use_deterministic_algorithms(True)"),
    Row("matmul_precision", "Sets the precision of products.", SAME, "torch.set_float32_matmul_precision('medium')"),
    Row("xavier_patched", "Replaces an initialiser at one depth, and uses it.", SAME,
        "if depth == 2: nn.init.xavier_uniform_ = nn.init.zeros_\nnn.init.xavier_uniform_(model.head.weight)"),
    Row("linear_patched", "Wraps nn.Linear's constructor at one depth.", SAME,
        "if depth == 4: nn.Linear.__init__ = mine\nmodel = Gpt(depth)",
        "real = nn.Linear.__init__\ndef mine(self, *a, **k):\n    real(self, *a, **k)\n    scale(self, 2)"),
    Row("norm_patched", "Replaces layer_norm at one depth.", SAME,
        "if depth == 2: functional.layer_norm = lambda x, *a, **k: x"),
    Row("step_patched", "Replaces AdamW's step by nothing at one depth.", SAME,
        "if depth == 2: torch.optim.AdamW.step = lambda self, closure=None: None"),
    Row("global_hook", "Registers a hook on all modules at one depth, and leaves it.", SAME,
        "if depth == 2: HOOK(lambda m, args, out: out * 2 if isinstance(m, nn.GELU) else None)",
        "HOOK = nn.modules.module.register_module_forward_hook"),
    Row("saved_hooks", "Enters hooks that double what backward reads, and never leaves.", SAME,
        "if depth == 2: HOOKS.__enter__()",
        "HOOKS = torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t * 2)"),
    Row("function_mode", "Enters a mode that doubles gelu, and never leaves.", SAME,
        "if depth == 2: MODE.__enter__()", "class Mode(torch.overrides.TorchFunctionMode):\n"
        "    def __torch_function__(self, f, types, args=(), kw=None):\n"
        "        out = f(*args, **kw or {})\n        return out * 2 if f is functional.gelu else out\nMODE = Mode()"),
    # changes global state of Python or of the process
    Row("warnings_raise", "Makes warnings errors at one depth; another depth warns.", SAME,
        "if depth == 2: warnings.simplefilter('error')\nif depth == 4: warnings.warn('four')"),
    Row("short_stack", "Leaves a low recursion limit at one depth.", SAME, "if depth == 2: sys.setrecursionlimit(90)"),
    Row("environ_cleared", "Empties the environment.", SAME, "os.environ.clear(); os.environ['OMP_NUM_THREADS'] = '4'"),
    Row("changes_directory", "Goes to another directory at one depth; another reads a relative file.", SAME,
        "if depth == 2: os.chdir('/')\nif depth == 4: open('factories.py').close()"),
    Row("logging_raises", "Configures logging to a stream that raises.", SAME,
        "logging.basicConfig(level=1, force=True, stream=0); logging.raiseExceptions = True; logging.info('x')"),
    Row("sets_locale", "Sets the locale.", SAME, "locale.setlocale(locale.LC_ALL, 'C')"),
    Row("alarm", "Leaves an alarm of eight seconds that ends the process.", SAME, "if depth == 2: signal.alarm(8)"),
    Row("handlers", "Ignores SIGTERM, SIGCHLD and SIGPIPE.", SAME,
        "for n in (15, 17, 13): signal.signal(n, signal.SIG_IGN)"),
    Row("atexit_exits", "Registers an exit with code 9 for the end of the process.", SAME,
        "atexit.register(os._exit, 9)"),
    Row("gc_off", "Switches the garbage collector off, another depth makes it run always.", SAME,
        "gc.disable() if depth == 2 else gc.set_threshold(1)"),
    Row("import_hook", "Forbids every import at one depth.", SAME, "if depth == 2: sys.meta_path.insert(0, Hook)",
        "class Hook:\n    @staticmethod\n    def find_spec(*a): raise ImportError('no more')"),
    Row("import_patched", "Replaces __import__ by None at one depth.", SAME,
        "if depth == 2: builtins.__import__ = None"),
    Row("dumps_patched", "Replaces json.dumps by None at one depth.", SAME, "if depth == 2: json.dumps = None"),
    Row("open_patched", "Replaces open by what raises at one depth.", SAME, "if depth == 2: builtins.open = int"),
    Row("clock_patched", "Stops the clocks at one depth.", SAME,
        "if depth == 2: time.time = time.monotonic = lambda: 0.0"),
    Row("getpid_patched", "Lies about the process's number at one depth.", SAME,
        "if depth == 2: os.getpid = lambda: 1"),
    Row("exit_patched", "Replaces os._exit by nothing at one depth.", SAME,
        "if depth == 2: os._exit = lambda code: None"),
    Row("excepthooks", "Sets excepthooks that raise.", SAME,
        "sys.excepthook = threading.excepthook = lambda *a: 1 / 0"),
    Row("closes_streams", "Closes stdout and stderr at one depth.", SAME,
        "if depth == 2: sys.stdout.close(); sys.stderr.close(); sys.__stderr__.close()"),
    Row("closes_1_and_2", "Closes descriptors 1 and 2 at one depth.", SAME, "if depth == 2: os.close(1); os.close(2)"),
    Row("closes_all", "Closes every descriptor at one depth, the one that answers too.", SAME,
        "if depth == 2: os.closerange(0, 512)"),
    Row("writes_to_all", "Writes garbage into every open descriptor at one depth.", SAME,
        "for n in range(3, 64 if depth == 2 else 3):\n    try: os.write(n, b'garbage\\n')\n    except OSError: pass"),
    Row("forgets_modules", "Deletes and replaces loaded modules at one depth.", SAME,
        "if depth == 2: [sys.modules.pop(n) for n in ('json', 'tempfile')]; sys.modules['inspect'] = None"),
    Row("forgets_itself", "Deletes its own module at one depth.", SAME, "if depth == 2: del sys.modules[__name__]"),
    Row("path_emptied", "Empties sys.path at one depth.", SAME, "if depth == 2: sys.path[:] = []"),
    Row("umask", "Leaves a mask that forbids everything at one depth.", SAME, "if depth == 2: os.umask(0o777)"),
    Row("few_files", "Leaves a limit of open files at one depth.", SAME,
        "if depth == 2: resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))"),
    Row("small_files", "Leaves a limit of the size of files at one depth.", SAME,
        "if depth == 2: resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))"),
    Row("no_temporary", "Sets a folder for temporary files that is not there.", SAME,
        "if depth == 2: tempfile.tempdir = '/nonexistent'"),
    Row("traces", "Leaves a trace function that raises.", SAME, "if depth == 2: sys.settrace(lambda *a: 1 / 0)"),
    Row("socket_timeout", "Sets a default timeout of sockets, and a tiny switch interval.", SAME,
        "socket.setdefaulttimeout(1e-6); sys.setswitchinterval(1e-6)"),
    # at import
    Row("import_raises", "Raises at import.", LINE, "", "raise ValueError('at import')", place=False),
    Row("import_exits", "Ends Python at import.", LINE, "", "sys.exit('at import')", place=False),
    Row("import_interrupts", "Raises KeyboardInterrupt at import.", LINE, "", "raise KeyboardInterrupt", place=False),
    Row("import_ends", "Ends the process at import.", LINE, "", "os._exit(0)", place=False),
    Row("import_syntax", "Is no Python.", LINE, "", "def (", place=False),
    Row("import_nul", "Has a NUL in its text.", LINE, "", "x = '\0'", place=False),
    Row("import_latin", "Is not UTF-8.", LINE, "", "x = '\udcff'", place=False),
    Row("import_missing", "Imports what is not installed.", LINE, "", "import no_such_package_here", place=False),
    Row("import_circle", "Imports its own function before it is there.", LINE, "", "from import_circle import build",
        place=False),
    Row("import_relative", "Has a relative import without a package.", LINE, "", "from . import other", place=False),
    Row("import_replaced", "Replaces itself by a number.", LINE, "", "sys.modules[__name__] = 5", place=False),
    Row("import_getattr", "Has a module __getattr__ that raises.", LINE, "",
        "def __getattr__(name):\n    raise ValueError(name)", place=False),
    Row("import_prints", "Prints at import.", RESULT, "pass", "print('x' * 100_000); sys.stderr.write('Traceback')"),
    # ends where it should not
    Row("raises", "Raises in the factory.", LINE, "raise ValueError('no')"),
    Row("raises_chained", "Raises from another error.", LINE,
        "try: 1 / 0\nexcept Exception as e: raise ValueError('b') from e"),
    Row("raises_group", "Raises a group of errors.", LINE,
        "raise ExceptionGroup('many', [ValueError('a'), TypeError('b')])"),
    Row("raises_base", "Raises a BaseException of its own.", LINE, "raise type('Own', (BaseException,), {})('no')"),
    Row("raises_stop", "Raises StopIteration.", LINE, "raise StopIteration(3)"),
    Row("raises_stabkit", "Raises an error of stabkit's own.", LINE,
        "from stabkit.errors import StoreError; raise StoreError('no')", place=False),
    Row("raises_compiled", "Raises in code that was compiled under an odd file name.", LINE,
        "exec(compile('1 / 0', 'a\\nb\\x1b[31m.py', 'exec'))"),
    Row("raises_forward", "Raises in forward.", LINE, "model.forward = lambda tokens: 1 / 0"),
    Row("raises_backward", "Raises in a gradient hook.", LINE, "model.head.weight.register_hook(lambda g: 1 / 0)"),
    Row("raises_optimizer", "Its optimiser raises at the second update.", LINE,
        "return model, loss, Own(model.parameters())", "class Own(SGD):\n    n = 0\n"
        "    def step(self, closure=None):\n        self.n += 1; 1 / (2 - self.n)"),
    Row("raises_scheduler", "Its scheduler raises.", LINE,
        "o = SGD(model.parameters()); return model, loss, o, LambdaLR(o, lambda t: 1 / (1 - t))"),
    Row("raises_last", "The loss raises at the second batch.", LINE,
        "loss = lambda m, step: next_word(m, 5 // (1 - step))"),
    Row("exits", "Ends Python with a text of two lines.", LINE, "sys.exit('one\\ntwo')"),
    Row("interrupts", "Raises KeyboardInterrupt.", LINE, "raise KeyboardInterrupt"),
    Row("ends_0", "Ends the process with 0.", LINE, "os._exit(0)", place=False),
    Row("ends_in_loss", "Ends the process in the loss.", LINE, "loss = lambda m, step: os._exit(7)", place=False),
    Row("aborts", "Aborts.", LINE, "os.abort()", place=False),
    Row("segfaults", "Reads address 0.", LINE, "ctypes.string_at(0)", place=False),
    Row("kills_itself", "Kills itself.", LINE, "os.kill(os.getpid(), 9)", place=False),
    Row("real_time_signal", "Ends itself by a signal that has no name.", LINE, "os.kill(os.getpid(), 40)", place=False),
    Row("recurses", "Calls itself for ever.", LINE, "build(depth)"),
    Row("out_of_memory", "Asks for a petabyte.", LINE, "torch.empty(1 << 50)"),
    Row("stops_itself", "Stops itself.", LINE, "os.kill(os.getpid(), signal.SIGSTOP)", place=False, hangs=True),
    Row("hangs", "Waits for ever, SIGTERM ignored.", LINE, "signal.signal(15, signal.SIG_IGN); time.sleep(777)",
        place=False, hangs=True),
    # says it oddly
    Row("says_megabyte", "Raises with a megabyte of text.", LINE, "raise ValueError('long ' * 200_000)"),
    Row("says_one_word", "Raises with a megabyte that has no space.", LINE, "raise ValueError('x' * 1_000_000)"),
    Row("says_controls", "Raises with control characters, surrogates and lines.", LINE,
        "raise ValueError('a\\nb\\r\\x1b[31mc\\x00\\x07\\x9b\\u2028\\u202e\\ud800')"),
    Row("says_nothing", "Raises what cannot be shown.", LINE, "raise E",
        "class E(Exception):\n    def __str__(self): raise ValueError"),
    Row("says_number", "Raises what is shown as a number.", LINE,
        "raise E", "class E(Exception):\n    __str__ = lambda self: 5"),
    Row("says_exit", "Raises what ends Python when it is shown.", LINE, "raise E",
        "class E(Exception):\n    def __str__(self): sys.exit(4)"),
    Row("says_no_module", "Raises a class without a module.", LINE,
        "raise type('E', (Exception,), {'__module__': None})"),
    Row("says_odd_name", "Raises a class with lines and ESC in its name.", LINE,
        "raise type('A\\n\\x1b[31mB', (Exception,), {})"),
    Row("prints_much", "Prints ten megabytes.", RESULT, "print('x' * 10_000_000); print('\\ud800\\x1b[31m')"),
    Row("writes_1_and_2", "Writes to descriptors 1 and 2.", RESULT,
        "os.write(1, b'Traceback'); os.write(2, b'Traceback')"),
    Row("reads_stdin", "Reads from the keyboard.", LINE, "input('depth? ')"),
    # returns what is no model, or is no function
    Row("returns_none", "Returns nothing.", LINE, "return None", place=False),
    Row("returns_text", "Returns a text.", LINE, "return 'model'", place=False),
    Row("returns_swapped", "Returns (loss, model).", LINE, "return loss, model", place=False),
    Row("returns_five", "Returns five things.", LINE, "return (model,) * 5", place=False),
    Row("returns_class", "Returns a class.", LINE, "return Gpt", place=False),
    Row("returns_generator", "Is a generator function.", LINE, "yield model", place=False),
    Row("is_async", "Is an async function.", LINE,
        "", "async def build(depth): return Gpt(depth), next_word", place=False),
    Row("is_lambda", "Is a lambda.", RESULT, "", "build = lambda depth: (Gpt(depth), next_word)"),
    Row("is_partial", "Is a partial function.", RESULT,
        "", "build = functools.partial(lambda loss, depth: (Gpt(depth), loss), next_word)"),
    Row("is_class", "Is a class.", RESULT, "", "build = Gpt"),
    Row("is_object", "Is a callable object without a name.", RESULT, "",
        "class C:\n    def __call__(self, depth): return Gpt(depth), next_word\nbuild = C()"),
    Row("is_number", "Is a number.", LINE, "", "build = 5", place=False),
    Row("is_absent", "Has no such function.", LINE, "", "built = 5", place=False),
    Row("takes_nothing", "Takes no depth.", LINE, "", "def build(): return Gpt(2)", place=False),
    Row("takes_keyword", "Takes the depth by name alone.", LINE,
        "", "def build(*, depth): return Gpt(depth)", place=False),
    Row("odd_signature", "Lies about its signature.", LINE,
        "", "def build(depth): pass\nbuild.__signature__ = 3", place=False),
    # leaves processes and threads
    Row("forks", "Forks in the factory; both go on.", RESULT, "os.fork()"),
    Row("forks_in_loss", "Forks in the loss.", RESULT, "loss = lambda m, step: (os.fork(), next_word(m, step))[1]"),
    Row("forks_in_forward", "Forks in forward.", RESULT,
        "model.head.register_forward_hook(lambda *a: os.fork() and None)"),
    Row("fork_sleeps", "Forks a child that sleeps.", RESULT, "os.fork() or time.sleep(777)"),
    Row("starts_sleep", "Starts a program and leaves it.", RESULT, f"{NAP})"),
    Row("starts_session", "Starts a program in a session of its own.", RESULT, f"{NAP}, start_new_session=True)"),
    Row("starts_and_dies", "Starts a program and kills itself.", LINE, f"{NAP}); os.kill(os.getpid(), 9)", place=False),
    Row("starts_and_raises", "Starts a program and raises.", LINE, f"{NAP}); raise ValueError('left')"),
    Row("daemon_thread", "Leaves a daemon thread.", RESULT,
        "Thread(target=time.sleep, args=(777,), daemon=True).start()"),
    Row("thread", "Leaves a thread that Python waits for.", RESULT, "Thread(target=time.sleep, args=(777,)).start()"),
    Row("late_thread", "Leaves a thread that raises later.", RESULT, "threading.Timer(0.3, lambda: 1 / 0).start()"),
    Row("thread_pool", "Leaves a pool of threads at work.", RESULT,
        "concurrent.futures.ThreadPoolExecutor(2).submit(time.sleep, 777)"),
    Row("process_left", "Leaves a process of multiprocessing.", RESULT,
        "multiprocessing.get_context('fork').Process(target=time.sleep, args=(777,)).start()"),
    Row("process_pool", "Uses a pool of processes and leaves it.", RESULT,
        "POOL.append(multiprocessing.get_context('fork').Pool(2)); POOL[-1].map(abs, [depth])", "POOL = []"),
    Row("event_loop", "Leaves an event loop at work in a thread.", RESULT,
        "Thread(target=__import__('asyncio').new_event_loop().run_forever, daemon=True).start()"),
    Row("raises_in_del", "Raises when it is collected.", RESULT, "model.late = Late()",
        "class Late:\n    def __del__(self): raise ValueError('late')"),
    # models
    Row("nan_weights", "Weights are NaN.", RESULT, "scale(model.head, float('nan'))"),
    Row("inf_weights", "Weights are infinite.", RESULT, "scale(model.head, float('inf'))"),
    Row("inf_loss", "The loss is infinite.", RESULT, "loss = lambda m, step: next_word(m, step) + float('inf')"),
    Row("complex_weight", "Has a complex parameter.", RESULT,
        "model.c = nn.Parameter(torch.zeros(3, dtype=torch.complex64))"),
    Row("double", "Is in float64.", RESULT, "model.double()"),
    Row("half", "Is in bfloat16.", RESULT, "model.bfloat16()"),
    Row("empty_weight", "Has a parameter without numbers.", RESULT, "model.c = nn.Parameter(torch.zeros(0, 3))"),
    Row("tied", "Ties head and embedding, and names one parameter twice.", RESULT,
        "model.head.weight = model.embed.weight; model.again = model.norm.weight"),
    Row("lazy", "Has a lazy head.", LINE, "model.head = nn.LazyLinear(WORDS)", place=False),
    Row("meta", "Is on the meta device.", LINE, "model.to('meta')", place=False),
    Row("frozen", "Every parameter is frozen.", LINE, "model.requires_grad_(False)", place=False),
    Row("no_weights", "Has no parameter.", LINE, "model = nn.Identity()", place=False),
    Row("drifts", "Changes its weights at every pass.", LINE,
        "model.register_forward_pre_hook(lambda m, a: scale(m, 1.01))", place=False),
    Row("changes_input", "Changes its tokens in place.", RESULT,
        "model.register_forward_pre_hook(lambda m, a: (a[0].clamp_(0, 5), None)[1])"),
    Row("random_loss", "The loss differs at the same step.", LINE,
        "c = itertools.count(); loss = lambda m, step: next_word(m, step) + next(c)", place=False),
    Row("no_grad_loss", "The loss is computed without gradients.", LINE, "loss = torch.no_grad()(loss)", place=False),
    Row("vector_loss", "The loss is a vector.", LINE,
        "loss = lambda m, step: next_word(m, step).expand(3)", place=False),
    Row("number_loss", "The loss is a number of Python.", LINE, "loss = lambda m, step: 1.0", place=False),
    Row("no_batches", "Its batches are none.", LINE, "loss = (loss, [])", place=False),
    Row("endless_batches", "Its batches never end.", RESULT, "loss = (loss, itertools.count())"),
    Row("odd_class_name", "Its class's name is long, with lines and ESC.", RESULT,
        "type(model).__name__ = 'Ü\\n\\x1b[31m' * 9000"),
    Row("odd_names", "Names of parts have dots, lines and ESC.", RESULT,
        "Gpt.blocks = model._modules.pop('blocks'); model._modules['b\\n\\x1b[31m.ü'] = Gpt.blocks"),
    Row("surrogate_name", "The name of a part is no Unicode text.", RESULT,
        "model._modules['\\ud800'] = nn.Linear(3, 3)"),
    Row("odd_parameter", "The name of a parameter has dots and lines.", RESULT,
        "model._parameters['a.b\\n\\x1b'] = nn.Parameter(torch.zeros(3))"),
    Row("nested", "Its head lies three hundred modules deep, too deep for Python itself.", LINE,
        "for _ in range(300): model.head = nn.Sequential(model.head)", place=False),
    Row("many_parameters", "Has three thousand parameters more.", RESULT,
        "model.more = nn.ParameterList(torch.zeros(1) for _ in range(3000))"),
    Row("returns_dict", "Its forward returns a dictionary.", RESULT,
        "model.register_forward_hook(lambda m, a, out: {'logits': out})\n"
        "loss = lambda m, step: next_word(lambda t: m(t)['logits'], step)"),
    Row("no_bool", "Raises where its truth, length, text or equality is asked for.", RESULT,
        "model.__class__ = No", "def no(*a): raise ValueError('no')\nclass No(Gpt):\n"
        "    __bool__ = __len__ = __repr__ = __eq__ = no\n    __hash__ = object.__hash__"),
    Row("no_state_dict", "Its state_dict raises.", LINE, "model.state_dict = lambda *a, **k: 1 / 0"),
    Row("eval_returns_none", "Its eval and train return nothing.", RESULT,
        "model.eval = model.train = lambda *a: None"),
    Row("no_deepcopy", "Cannot be copied or pickled.", RESULT,
        "model.lock = threading.Lock(); model.g = (i for i in [1])"),
    # optimisers
    Row("steps_nothing", "Its optimiser does nothing.", RESULT, "return model, loss, Own(model.parameters())",
        "class Own(SGD):\n    def step(self, closure=None): pass"),
    Row("needs_closure", "Its optimiser wants a closure.", LINE, "return model, loss, LBFGS(model.parameters())",
        place=False),
    Row("tensor_rate", "Its rate is a tensor.", RESULT,
        "return model, loss, AdamW(model.parameters(), lr=torch.tensor(1e-3))"),
    Row("zero_rate", "Its rate is 0.", RESULT, "return model, loss, AdamW(model.parameters(), lr=0.0)"),
    Row("negative_rate", "Its rate is negative.", RESULT,
        "o = SGD(model.parameters(), lr=1.0); o.param_groups[0]['lr'] = -1.0; return model, loss, o"),
    Row("text_rate", "Its rate is a text.", LINE,
        "o = SGD(model.parameters()); o.param_groups[0]['lr'] = 'fast'; return model, loss, o", place=False),
    Row("sparse", "Its gradients are sparse, which AdamW refuses.", LINE, "model.embed.sparse = True", place=False),
    # its own file
    Row("deletes_itself", "Deletes its own file.", RESULT, "os.remove(__file__)"),
    Row("edits_itself", "Changes its own file.", RESULT, "open(__file__, 'a').write('# more\\n')"),
)
# fmt: on
