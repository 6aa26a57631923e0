# SPDX-License-Identifier: Apache-2.0
"""The program of `acc compile`: writes a training step of a Python model as a package, which acc::CompiledModel trains in C++.

    python -c "exec(this file)" MODULE:FACTORY FILE.pt2 no|bf16 any|fixed

The last words are the precision, and whether the batch may have any size. The package is an archive of AOTInductor with two
libraries, `training` (the loss, the outputs, the gradient of each trained parameter) and `evaluation` (the loss and the
outputs), the initial weights, and acc.json (see description). Nothing is written before the numbers of both were compared with
those of the model itself (see checks).
"""

import contextlib
import copy
import ctypes
import importlib
import importlib.util
import io
import json
import logging
import math
import operator
import os
import platform
import random
import signal
import statistics
import struct
import sys
import tempfile
import time
import traceback
import unittest.mock
import warnings
import zlib

TORCH = "2.11."  # whose exports and packages were tested


class Refusal(Exception):
    """What cannot be compiled: one line, and what to do about it."""

    def __init__(self, where, what, hint=""):
        super().__init__(f"{where}: {what}" + (f" ({hint})" if hint else ""))


def first_line(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def refusal_of(where, error):
    """An exception of the user's code: where it was raised, and what it says."""
    frames = [one for one in traceback.extract_tb(error.__traceback__) if os.sep + "site-packages" + os.sep not in one.filename]
    own = refusal_of.__code__.co_filename
    frames = [one for one in frames if os.path.exists(one.filename) and one.filename != own]
    return Refusal(f"{frames[-1].filename}:{frames[-1].lineno}" if frames else where, first_line(error))


# ---- The model ----


class Model:
    """What a factory returned: a dictionary of

    model     the module
    inputs    example tensors of its forward, a tuple
    targets   tensors that only the loss takes, a tuple (default: none)
    loss      the loss of the output and the targets (default: what forward returns, first or as its `loss`); a module, such as
              nn.CrossEntropyLoss(weight=...), may have buffers, which are constants
    groups    names of groups of parameters, each with the names of its parameters (default: none)
    """

    KEYS = {"model", "inputs", "targets", "loss", "groups"}

    def __init__(self, name, given):
        if not isinstance(given, dict) or not {"model", "inputs"} <= given.keys():
            raise Refusal(name, "does not return a dictionary with model and inputs", "acc compile --help")
        if unknown := sorted(given.keys() - self.KEYS):
            raise Refusal(name, f"returns the unknown key {unknown[0]!r}", "known: " + ", ".join(sorted(self.KEYS)))
        self.name = name
        self.module = given["model"]
        if not isinstance(self.module, torch.nn.Module):
            raise Refusal(name, "model is no torch.nn.Module")
        self.inputs = self.tensors("inputs", given["inputs"])
        self.targets = self.tensors("targets", given.get("targets", ()))
        self.loss = given.get("loss")
        self.groups = given.get("groups", {})
        self.parameters = dict(self.module.named_parameters())
        self.buffers = dict(self.module.named_buffers())
        self.loss_buffers = tensors_of_loss(self.loss)
        self.trained = [name for name, one in self.parameters.items() if one.requires_grad]
        self.check_module()

    def tensors(self, key, given):
        if not isinstance(given, (tuple, list)) or not all(isinstance(one, torch.Tensor) for one in given):
            raise Refusal(self.name, f"{key} is no tuple of tensors")
        return tuple(one.detach().contiguous() for one in given)

    def check_module(self):
        if not self.trained:
            raise Refusal(self.name, "the model has no parameter that requires a gradient")
        for name, one in {**self.parameters, **self.buffers, **self.loss_buffers}.items():
            if one.device.type != "cpu":
                raise Refusal(name, f"is on {one.device}", "packages are for CPUs: make the model there")
            if not one.is_contiguous():
                raise Refusal(name, "is not contiguous in memory", "call contiguous() before it is registered")
        self.check_loss()
        self.check_norms()
        self.check_memory()
        self.check_hooks()
        self.check_modes()
        for group, names in self.groups.items():
            for name in names:
                if name not in self.parameters:
                    raise Refusal(f"{self.name}, group {group!r}", f"the model has no parameter {name!r}")

    def check_loss(self):
        if not isinstance(self.loss, torch.nn.Module):
            return
        for name, _ in self.loss.named_parameters():
            raise Refusal(f"{self.name}, loss", f"has the parameter {name}, which would not be trained", "register it in the model")
        for name, one in self.loss_buffers.items():
            if name in self.parameters or name in self.buffers:
                raise Refusal(name, "is a tensor of the model and of the loss", "give the model's another name")

    def check_norms(self):
        for path, layer in self.module.named_modules():
            for hook in layer._forward_pre_hooks.values():
                if (name := {"WeightNorm": "weight_norm", "SpectralNorm": "spectral_norm"}.get(type(hook).__name__)):
                    raise Refusal(f"layer {path}", f"uses torch.nn.utils.{name}, which keeps a weight that is no parameter",
                                  f"use torch.nn.utils.parametrizations.{name}")

    def check_memory(self):
        """Tensors that share memory without being one, as by `a.weight.data = b.weight.data`, would be two."""
        owners = []
        for name, one in sorted({**self.parameters, **self.buffers, **self.loss_buffers}.items(), key=lambda item: item[1].data_ptr()):
            begin = one.data_ptr()
            if owners and one.numel() and begin < owners[-1][1]:
                raise Refusal(name, f"shares memory with {owners[-1][0]}, and would be a tensor of its own",
                              "tie parameters by assignment, a.weight = b.weight, or clone() one")
            owners.append((name, begin + one.numel() * one.element_size()))

    def check_hooks(self):
        """Copies of a model, as the step is made of, lack the hooks of its tensors."""
        for name, one in self.parameters.items():
            if one._backward_hooks or getattr(one, "_post_accumulate_grad_hooks", None):
                raise Refusal(name, "has a hook of its gradient, which a compiled step does not call",
                              "remove it, and change the gradient in C++ between backward and step")

    def check_modes(self):
        """A step trains all layers, or none, but for those that the model's own train() leaves in another mode."""
        ours = dict(copy.deepcopy(self.module).train(self.module.training).named_modules())
        for name, layer in self.module.named_modules():
            if layer.training != ours[name].training:
                mode = "training" if layer.training else "evaluation"
                raise Refusal(f"layer {name}", f"is in {mode} mode, which the model's train() does not keep",
                              "write a train() of the model that does")

    @property
    def example(self):
        return self.inputs + self.targets

    @property
    def batch(self):
        return self.inputs[0].size(0) if self.inputs and self.inputs[0].dim() > 0 else None

    def is_batched(self, tensor):
        return tensor.dim() > 0 and tensor.size(0) == self.batch

    def persistent_buffers(self):
        kept = self.module.state_dict(keep_vars=True).keys()
        return [name for name in self.buffers if name in kept]


def tensors_of_loss(loss):
    """The buffers of a loss that is a module, such as the weights of classes, by names that a model's rarely have."""
    return {f"loss.{name}": one for name, one in loss.named_buffers()} if isinstance(loss, torch.nn.Module) else {}


def load_model(words):
    module, colon, factory = words.rpartition(":")
    if not colon:
        raise Refusal(words, "is not MODULE:FACTORY", "as in digits:step or models/digits.py:step")
    sys.path.insert(0, os.getcwd())
    try:
        if module.endswith(".py"):
            sys.path.insert(0, os.path.dirname(os.path.abspath(module)))
            specification = importlib.util.spec_from_file_location(os.path.basename(module)[:-3], module)
            loaded = importlib.util.module_from_spec(specification)
            sys.modules[specification.name] = loaded
            specification.loader.exec_module(loaded)
        else:
            loaded = importlib.import_module(module)
        function = getattr(loaded, factory)
        torch.manual_seed(0)
        given = function()
    except Exception as error:
        raise refusal_of(words, error) from error
    return Model(words, given)


# ---- The step as one function of tensors ----


def dropped(value, p, training, shape):
    """Dropout, with random numbers of float32 whatever the value's type is: the same for each precision and for its export."""
    if not training or p == 0:
        return value
    kept = torch.rand(shape, device=value.device) >= p
    return value * kept * (0.0 if p == 1 else 1 / (1 - p))


def dropped_alpha(value, p, training, shape):
    """Dropout to the lowest value of SELU, scaled and shifted so that mean and variance stay."""
    if not training or p == 0:
        return value
    if p == 1:
        return value * 0.0
    alpha = 1.7580993408473766
    scale = 1 / math.sqrt((alpha * alpha * p + 1) * (1 - p))
    kept = (torch.rand(shape, device=value.device) >= p).to(value.dtype)
    return value * kept * scale + alpha * scale * (kept - 1 + p)


def channels_of(input):
    """A random number for each channel of each sample."""
    return (*input.shape[:2], *[1] * (input.dim() - 2))


def channels_with_batch(dimensions):
    """As channels_of, where an input of fewer dimensions is one sample."""
    return lambda input: channels_of(input) if input.dim() >= dimensions else (input.size(0), *[1] * (input.dim() - 1))


def dropout_of(drop, shape, training_by_default):
    def dropout(input, p=0.5, training=training_by_default, inplace=False):
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        output = drop(input, p, training, shape(input))
        return input.copy_(output) if inplace and output is not input else output

    return dropout


def attention_with_dropout(exact):
    """scaled_dot_product_attention as its documentation writes it, where it drops; `exact` otherwise."""

    def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        if dropout_p == 0:
            return exact(query, key, value, attn_mask, 0.0, is_causal, scale=scale, enable_gqa=enable_gqa)
        if enable_gqa:
            key = key.repeat_interleave(query.size(-3) // key.size(-3), -3)
            value = value.repeat_interleave(query.size(-3) // value.size(-3), -3)
        scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(query.size(-1)) if scale is None else scale)
        if is_causal:
            seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).tril()
            scores = scores.masked_fill(~seen, -math.inf)
        elif attn_mask is not None and attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(~attn_mask, -math.inf)
        elif attn_mask is not None:
            scores = scores + attn_mask
        weights = scores.softmax(-1)
        return dropped(weights, dropout_p, True, weights.shape) @ value

    return attention


@contextlib.contextmanager
def reproducible_dropout():
    functions = torch.nn.functional
    replaced = {
        "dropout": dropout_of(dropped, lambda input: input.shape, True),
        "dropout1d": dropout_of(dropped, channels_with_batch(3), True),
        "dropout2d": dropout_of(dropped, channels_of, True),  # in torch, too, three dimensions are a batch
        "dropout3d": dropout_of(dropped, channels_with_batch(5), True),
        "alpha_dropout": dropout_of(dropped_alpha, lambda input: input.shape, False),
        "feature_alpha_dropout": dropout_of(dropped_alpha, channels_of, False),
        "scaled_dot_product_attention": attention_with_dropout(functions.scaled_dot_product_attention),
    }
    with contextlib.ExitStack() as stack:
        for name, function in replaced.items():
            stack.enter_context(unittest.mock.patch.object(functions, name, function))
        yield


def float32_draws():
    """Random numbers are drawn in float32 whatever the type is, so that a model in float64 draws those of its own precision."""

    class Float32Draws(torch.overrides.TorchFunctionMode):
        LIKE = {torch.rand_like: torch.rand, torch.randn_like: torch.randn}
        IN_PLACE = {getattr(torch.Tensor, name) for name in ("normal_", "uniform_", "exponential_", "bernoulli_", "log_normal_", "cauchy_", "geometric_")}
        OF_TENSORS = {torch.normal, torch.bernoulli, torch.Tensor.bernoulli, torch.poisson, torch.multinomial, torch.Tensor.multinomial}

        def __torch_function__(self, function, types, arguments=(), options=None):
            options = dict(options or {})
            if function in (torch.rand, torch.randn) and options.get("dtype") not in (None, torch.float32):
                return function(*arguments, **{**options, "dtype": torch.float32}).to(options["dtype"])
            if not arguments or not isinstance(one := arguments[0], torch.Tensor) or one.dtype == torch.float32 or not one.is_floating_point():
                return function(*arguments, **options)
            if function in self.LIKE:
                dtype = options.pop("dtype", None) or one.dtype
                return self.LIKE[function](one.shape, device=one.device).to(dtype)
            if function in self.IN_PLACE:
                return one.copy_(function(torch.empty(one.shape, device=one.device), *self.narrow(arguments[1:]), **options))
            if function in self.OF_TENSORS:
                drawn = function(*self.narrow(arguments), **options)
                return drawn.to(one.dtype) if drawn.is_floating_point() else drawn
            return function(*arguments, **options)

        @staticmethod
        def narrow(arguments):
            return [one.float() if isinstance(one, torch.Tensor) and one.is_floating_point() else one for one in arguments]

    return Float32Draws()


def checked_one_hot():
    """Exported, one_hot compares with all numbers of classes, and makes a row of zeros of one that is out of range, where ATen
    refuses it. Here it uses classes as indices, as ATen does on CPUs, so that they are checked with all others."""

    class OneHotByIndex(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, arguments=(), options=None):
            if function is torch.nn.functional.one_hot:
                return self.one_hot(function, *arguments, **(options or {}))
            return function(*arguments, **(options or {}))

        @staticmethod
        def one_hot(function, tensor, num_classes=-1):
            if num_classes < 1:
                return function(tensor, num_classes)
            return tensor.new_zeros((*tensor.shape, num_classes)).scatter(-1, tensor.unsqueeze(-1), 1)

    return OneHotByIndex()


def tensors_of(output):
    """The tensors in what a forward returned, in order."""
    if isinstance(output, torch.Tensor):
        return [output]
    if hasattr(output, "values"):
        output = output.values()
    if not isinstance(output, (str, bytes)) and hasattr(output, "__iter__"):
        return [tensor for part in output for tensor in tensors_of(part)]
    return []


def loss_in(output):
    """The loss in what a forward returned that computes it."""
    if isinstance(getattr(output, "loss", None), torch.Tensor):
        return output.loss
    if isinstance(output, dict) and isinstance(output.get("loss"), torch.Tensor):
        return output["loss"]
    return (tensors_of(output) or [None])[0]


class Step:
    """Loss and outputs of a model, as a function of its parameters, buffers and inputs, in one type of floating point: with its
    own weights, or with others."""

    def __init__(self, model, dtype=None, precision="no", with_others=False):
        self.model = model
        self.module = copy.deepcopy(model.module)
        self.loss = copy.deepcopy(model.loss) if isinstance(model.loss, torch.nn.Module) else model.loss
        self.dtype = dtype
        self.precision = precision
        if with_others:
            change_weights(self.module)
            if isinstance(self.loss, torch.nn.Module):
                change_weights(self.loss)
        if dtype is not None:
            self.module.to(dtype)
            if isinstance(self.loss, torch.nn.Module):
                self.loss.to(dtype)

    def tensors(self):
        return {**dict(self.module.named_parameters()), **dict(self.module.named_buffers()), **tensors_of_loss(self.loss)}

    def loss_with(self, tensors):
        """The loss as a function of its buffers, too."""
        if not isinstance(self.loss, torch.nn.Module):
            return self.loss
        own = {name.removeprefix("loss."): tensors[name] for name in self.model.loss_buffers}
        return lambda *arguments: torch.func.functional_call(self.loss, own, arguments)

    def cast(self, tensors):
        if self.dtype is None:
            return tuple(tensors)
        return tuple(one.to(self.dtype) if one.is_floating_point() else one for one in tensors)

    def results(self, call, example, loss_call=None):
        """The loss, and what else forward returned. `call` runs the module, `loss_call` the loss."""
        inputs, targets = example[: len(self.model.inputs)], example[len(self.model.inputs) :]
        with contextlib.ExitStack() as stack:
            stack.enter_context(reproducible_dropout())
            if self.precision == "bf16":
                stack.enter_context(torch.autocast("cpu", torch.bfloat16))
            output = call(inputs)
        wide = [one.float() if one.dtype in (torch.bfloat16, torch.float16) else one for one in tensors_of(output)]
        if self.loss is None:
            loss = loss_in(output)
            others = [one for part, one in zip(tensors_of(output), wide) if part is not loss]
            loss = loss.float() if loss is not None and loss.dtype == torch.bfloat16 else loss
        else:
            replaced = iter(wide)
            loss = (loss_call or self.loss)(torch.utils._pytree.tree_map_only(torch.Tensor, lambda _: next(replaced), output), *targets)
            others = wide
        if not isinstance(loss, torch.Tensor) or loss.dim() != 0:
            raise Refusal(self.model.name, "the loss is no scalar tensor")
        return loss, [one.detach() for one in others]

    def eager(self, example, seed, training=True):
        """What the model itself computes: loss, outputs, gradients and buffers by name."""
        module = copy.deepcopy(self.module).train(training)
        loss_module = self.loss if isinstance(self.loss, torch.nn.Module) else torch.nn.Module()
        state = lambda: {**python_state(module), **{f"loss.{name}": one for name, one in python_state(loss_module).items()}}
        before = state()
        torch.manual_seed(seed)
        with torch.set_grad_enabled(training), float32_draws():
            loss, outputs = self.results(lambda inputs: module(*inputs), self.cast(example))
        for name, value in state().items():
            if before.get(name) != value:
                raise Refusal(name, "changes in forward, and would be a constant", "what changes must be a buffer, changed in place")
        if training:
            loss.backward()
        gradients = {name: one.grad for name, one in module.named_parameters() if one.requires_grad}
        return Results(loss.detach(), outputs, gradients if training else {}, dict(module.named_buffers()))


PLAIN = (bool, int, float, str, type(None), list, tuple, dict, set)


def plain_state(path, values):
    """The texts of plain values by name, also of those in simple objects such as a types.SimpleNamespace."""
    for name, value in values.items():
        if isinstance(value, PLAIN):
            if "tensor" not in (text := repr(value)):
                yield f"{path}.{name}".strip("."), text
        elif not isinstance(value, (torch.Tensor, torch.nn.Module, type)) and type(getattr(value, "__dict__", None)) is dict:
            inner = {key: one for key, one in vars(value).items() if isinstance(one, PLAIN)}
            yield from plain_state(f"{path}.{name}", inner)


def python_state(module):
    """What a model keeps beside its tensors, and random numbers that are not LibTorch's: as texts."""
    torchs_own = vars(torch.nn.Module()).keys()
    state = {"the state of Python's random": hash(random.getstate())}
    if numpy := sys.modules.get("numpy"):
        kind, keys, *rest = numpy.random.get_state()
        state["the state of numpy's random"] = hash((kind, keys.tobytes(), *rest))
    for path, layer in module.named_modules():
        state.update(plain_state(path, {name: one for name, one in vars(layer).items() if name not in torchs_own}))
    return state


def change_weights(module):
    """Gives a module weights that no number in a compiled step can have been made of. Buffers keep their sign, and those of
    integers, which may be indices, change where they are counts of one element."""
    with torch.no_grad():
        for one in module.parameters():
            one.mul_(1.25).add_(0.01)
        for one in module.buffers():
            if one.is_floating_point():
                one.mul_(1.25)
            elif one.dim() == 0 and one.dtype == torch.int64:
                one.add_(3)


class Results:
    """The numbers of one step: of each kind by name."""

    def __init__(self, loss, outputs, gradients, buffers):
        self.kinds = {
            "loss": {"": loss},
            "output": {str(index): tensor for index, tensor in enumerate(outputs)},
            "gradient of": gradients,
            "buffer": buffers,
        }

    def require_finite(self, where):
        """Buffers may be infinite, as masks of attention are."""
        for kind, named in self.kinds.items():
            is_number = torch.isfinite if kind != "buffer" else lambda one: ~one.isnan()
            for name, tensor in named.items():
                if tensor is not None and tensor.is_floating_point() and not is_number(tensor).all():
                    raise Refusal(where, f"the {kind} {name}".strip() + " is not finite on the example inputs, or on their values in another order", "give others")


def flat_step(step, training):
    """A step as the export takes it: with the tensors of the model as p0, p1, … and b0, b1, …, those of the loss as l0, …, and
    `names` of them."""

    class Flat(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.names = {}
            for name, one in step.module.named_parameters():
                if training and name in step.model.trained:
                    self.register_parameter(self.flat_name(name, "p"), torch.nn.Parameter(one.detach()))
                else:
                    self.register_buffer(self.flat_name(name, "p"), one.detach())
            for name, one in step.module.named_buffers():
                self.register_buffer(self.flat_name(name, "b"), one)
            for name, one in tensors_of_loss(step.loss).items():
                self.register_buffer(self.flat_name(name, "l"), one)

        def flat_name(self, name, kind):
            return self.names.setdefault(name, f"{kind}{len(self.names)}")

        def forward(self, *example):
            tensors = {name: getattr(self, flat) for name, flat in self.names.items()}
            own = {name: one for name, one in tensors.items() if name not in step.model.loss_buffers}
            with float32_draws():
                run = lambda inputs: torch.func.functional_call(step.module, own, inputs)
                loss, outputs = step.results(run, example, step.loss_with(tensors))
            return (loss, *outputs)

    step.module.train(training)
    return Flat()


# ---- The export ----


class Exported:
    """The graph of a step: in training with the gradients."""

    def __init__(self, step, example, training, any_batch):
        model = step.model
        flat = flat_step(step, training)
        batch = torch.export.Dim("batch", min=1)
        shapes = (tuple({0: batch} if model.is_batched(one) else {} for one in example),) if any_batch else None
        self.example = step.cast(example)
        try:
            # What torch prints of a graph beside its exception is of no help to its user.
            silence = io.StringIO()
            quiet = contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence)
            with checked_one_hot(), torch.set_grad_enabled(training), quiet[0], quiet[1]:
                program = torch.export.export(flat, self.example, dynamic_shapes=shapes, strict=False)
                self.program = with_gradients(program) if training else program.run_decompositions(decompositions())
        except Refusal:
            raise
        except Exception as error:
            if "Constraints violated" in str(error) or "specialized" in str(error):
                raise Refusal(model.name, f"computes with batches of {model.batch} only", "--fixed_batch compiles for these") from error
            raise Refusal(model.name, "cannot be exported: " + first_line(error)) from error
        self.names = {flat: name for name, flat in flat.names.items()}
        self.outputs = [(one.kind.name, self.names.get(one.target)) for one in self.program.graph_signature.output_specs]
        for name in self.program.constants:
            raise Refusal(model.name, f"computes with a tensor that is no parameter, buffer or input of the model ({name})",
                          "register it in the model: a parameter to train it, else a buffer; weights of classes are a buffer of "
                          "nn.CrossEntropyLoss(weight=...) as the loss")
        for kind, name in self.outputs:
            if kind == "BUFFER_MUTATION" and name in model.loss_buffers:
                raise Refusal(name, "is changed by the loss, which may have constants only", "register it in the model, and change it there")
        if any(kind == "USER_INPUT_MUTATION" for kind, _ in self.outputs):
            raise Refusal(model.name, "changes its inputs in place, which a compiled step may not")

    def constant(self, target, tensors):
        """A copy of one of these tensors."""
        return tensors[self.names[target]].detach().clone()

    def rounds(self):
        """Whether a part of it is computed in less than float64, whatever the model's type is."""
        values = [node.meta.get("val") for node in self.program.graph.nodes]
        return any(isinstance(one, torch.Tensor) and one.dtype in (torch.float32, torch.bfloat16, torch.float16) for one in values)

    def results(self, outputs, tensors):
        """Outputs in the order of the signature as Results."""
        kinds = {"LOSS_OUTPUT": [], "USER_OUTPUT": [], "GRADIENT_TO_PARAMETER": [], "BUFFER_MUTATION": []}
        for (kind, name), tensor in zip(self.outputs, outputs, strict=True):
            kinds[kind].append((name, tensor))
        values = [tensor for _, tensor in kinds["LOSS_OUTPUT"] + kinds["USER_OUTPUT"]]
        buffers = {name: tensors[name].detach() for flat, name in self.names.items() if flat.startswith("b")}
        buffers.update(kinds["BUFFER_MUTATION"])
        return Results(values[0], values[1:], dict(kinds["GRADIENT_TO_PARAMETER"]), buffers)

    def interpret(self, example, tensors, seed):
        """What the graph computes, without a compiler."""
        given = iter(example)
        arguments = [
            next(given) if one.kind.name == "USER_INPUT" else self.constant(one.target, tensors)
            for one in self.program.graph_signature.input_specs
        ]
        torch.manual_seed(seed)
        with torch.no_grad():
            return self.results(torch.fx.Interpreter(self.program.graph_module).run(*arguments), tensors)


def decompositions():
    """torch's own for exports, but for the fused attention of CPUs: torch 2.11 takes it apart, and leaves its gradient as it is,
    which then takes the weights of attention for the logarithms of their sums, and is wrong."""
    from torch.export import default_decompositions

    table = default_decompositions()
    table.pop(torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default)
    return table


def with_gradients(program):
    from torch.export.experimental import _export_forward_backward

    # It takes the table from there.
    with unittest.mock.patch("torch._decomp.core_aten_decompositions", decompositions):
        return _export_forward_backward(program, joint_loss_index=0)


# ---- The compiled libraries ----

OPTIONS = {
    "aot_inductor.package": True,
    # The symbols are those of the program that loads it: a LibTorch for CPUs has no libtorch.so.
    "aot_inductor.link_libtorch": False,
    "aot_inductor.package_constants_in_so": False,
    # Small tensors would become numbers in the code, which no optimizer reaches.
    "always_keep_tensor_constants": True,
    "joint_graph_constant_folding": False,
    # Convolutions keep the layout of their inputs: gradients would be copied between two.
    "layout_optimization": False,
    # As many threads as the worker may use, not as this process.
    "cpp.dynamic_threads": True,
    # Random numbers of the default generator, in the order of the model.
    "fallback_random": True,
}


def leave_pooling_to_aten():
    """Max pooling is no code of its own: on CPUs Inductor's takes several times as long as ATen's in both directions, the gradient
    eighteen times."""
    from torch._inductor import decomposition, lowering

    for packet in (torch.ops.aten.max_pool2d_with_indices, torch.ops.aten.max_pool2d_with_indices_backward):
        for op in (packet, *(getattr(packet, name) for name in packet.overloads())):
            lowering.lowerings.pop(op, None)
            decomposition.decompositions.pop(op, None)
        lowering.make_fallback(packet.default, warn=False, override_decomp=True)


MOVES = {"unsqueeze", "squeeze", "expand", "view", "_unsafe_view", "slice", "select", "clone", "alias", "permute", "_to_copy"}


def operation(node):
    """Of aten.gather.default the name gather."""
    return node.target._opname if isinstance(node.target, torch._ops.OpOverload) else ""


def origin_of_indices(node, inputs):
    """Words for the tensor that the values of an index are from."""
    while node not in inputs:
        if operation(node) == "where":  # as nll_loss leaves out the labels that it ignores
            node = node.args[1]
        elif operation(node) in MOVES:
            node = node.args[0]
        else:
            return "the model computes"
    return f"tensor {inputs.index(node) + 1} has"


class CheckedIndices:
    """Keeps the indices of a graph in range. The code of a compiler counts negative ones from the end where ATen refuses them, and
    ends the process for those that are too large. Here the graph computes with another index instead, and returns as a last
    result, which of the `checks` passed: words for what is wrong where one did not."""

    def __init__(self, module):
        self.graph = module.graph
        self.checks = {}
        self.flags = []
        self.safe = {}
        self.inputs = [node for node in self.graph.nodes if node.op == "placeholder"]
        for node in list(self.graph.nodes):
            for position, indexed, dimension, negative in self.index_arguments(node):
                self.replace(node, position, indexed, dimension, negative)
        if self.flags:
            output = self.graph.output_node()
            with self.graph.inserting_before(output):
                passed = self.graph.call_function(torch.ops.aten.stack.default, (self.flags,))
            output.args = ((*output.args[0], passed),)
        module.recompile()

    @staticmethod
    def index_arguments(node):
        """Of the indices of a node: the argument, or that and the position in its list; the tensor that they index, or the number
        of its rows; the dimension; whether they may count from the end."""
        name = operation(node)
        if name in ("embedding", "_embedding_bag", "_embedding_bag_forward_only"):
            return [((1,), node.args[0], 0, False)]
        if name == "_embedding_bag_backward":
            return [((1,), node.args[6], 0, False)]
        if name == "_embedding_bag_per_sample_weights_backward":
            return [((2,), node.args[1], 0, False)]
        if name in ("gather", "index_select", "index_add", "index_copy") or name.startswith("scatter"):
            return [((2,), node.args[0], node.args[1], False)]
        if name in ("index", "index_put"):
            indices = [one for one in node.args[1] if one is not None]
            if all(one.meta["val"].dtype in (torch.int64, torch.int32) for one in indices):
                return [((1, i), node.args[0], i, True) for i, one in enumerate(node.args[1]) if one is not None]
        return []

    def replace(self, node, position, indexed, dimension, negative):
        shape = (indexed,) if isinstance(indexed, int) else indexed.meta["val"].shape
        if not shape:
            return
        index = node.args[position[0]] if len(position) == 1 else node.args[1][position[1]]
        with self.graph.inserting_before(node):
            size = shape[dimension]
            if not isinstance(size, int):
                size = self.graph.call_function(torch.ops.aten.sym_size.int, (indexed, dimension % len(shape)))
            safe = self.checked(index, size, shape[dimension], negative)
        if len(position) == 1:
            node.update_arg(position[0], safe)
        else:
            node.update_arg(1, [safe if i == position[1] else one for i, one in enumerate(node.args[1])])

    def checked(self, index, size, known, negative):
        for strict in (False, negative):
            if (safe := self.safe.get((index, str(known), strict))) is not None:
                return safe
        call = self.graph.call_function
        aten = torch.ops.aten
        lowest = call(operator.neg, (size,)) if negative and not isinstance(size, int) else -size if negative else 0
        in_range = call(aten.logical_and.default, (call(aten.ge.Scalar, (index, lowest)), call(aten.lt.Scalar, (index, size))))
        safe = call(aten.where.ScalarOther, (in_range, index, 0))
        safe.meta["val"] = index.meta["val"]
        self.safe[index, str(known), negative] = safe
        last = known - 1 if isinstance(known, int) else "the size of the batch less one"
        first = 0 if not negative else -known if isinstance(known, int) else "that below zero"
        words = f"{origin_of_indices(index, self.inputs)} an index or a label that is not from {first} to {last}"
        if words not in self.checks:
            self.checks[words] = None
            self.flags.append(call(aten.all.default, (in_range,)))
        else:
            position = list(self.checks).index(words)
            self.flags[position] = call(aten.logical_and.default, (self.flags[position], call(aten.all.default, (in_range,))))
        return safe


class Library:
    """A compiled graph, in a file of its own for the checks."""

    def __init__(self, name, exported, folder):
        self.exported = exported
        try:
            module = exported.program.module()
            self.checks = list(CheckedIndices(module).checks)
            # Code that was compiled for one thread sums wrongly on several.
            options = {**OPTIONS, "cpp.threads": max(2, torch.get_num_threads())}
            self.files = torch._inductor.aot_compile(module, exported.example, options=options)
        except Exception as error:
            raise Refusal(name, "cannot be compiled: " + first_line(error)) from error
        path = os.path.join(folder, name + ".pt2")
        torch._inductor.package.package_aoti(path, self.files)
        self.loader = torch._C._aoti.AOTIModelPackageLoader(path, "model", False, 1, -1)
        self.constants = self.loader.get_constant_fqns()

    def run(self, example, tensors, seed=0):
        constants = {name: self.exported.constant(name, tensors) for name in self.constants}
        self.loader.load_constants(constants, False, True, True)
        torch.manual_seed(seed)
        outputs = self.loader.boxed_run(list(example))
        if self.checks and not outputs.pop().all():
            raise Refusal("the compiled step", "has an index that is out of range where the model has none")
        outputs = iter(outputs)
        by_target = {self.exported.names[name]: tensor for name, tensor in constants.items() if name in self.exported.names}
        # Buffers are changed in place, and not among the outputs.
        mutated = "BUFFER_MUTATION"
        values = [by_target.get(name) if kind == mutated else next(outputs) for kind, name in self.exported.outputs]
        return self.exported.results(values, tensors)


@contextlib.contextmanager
def compiler():
    """Compilations that leave nothing behind but the headers that torch has precompiled for the next one, in a folder of the user."""
    with tempfile.TemporaryDirectory(prefix="acc-compile-") as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
        # What the processor has is known; a compiler that lacks it says so.
        os.environ["TORCHINDUCTOR_VEC_ISA_OK"] = "1"
        import torch._inductor.package

        leave_pooling_to_aten()
        # Libraries take symbols of what is loaded for all, as LibTorch is in a program of C++.
        ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so"), ctypes.RTLD_GLOBAL)
        yield folder


# ---- The checks ----


def rms(tensor):
    return tensor.double().square().mean().sqrt().item() if tensor.numel() else 0.0


def difference(ours, theirs):
    """0 where both are the same infinity."""
    return (ours.double() - theirs.double()).masked_fill(ours == theirs, 0.0)


def varied(example, seed=1):
    """The same values at other positions: what a model takes may have a range."""
    generator = torch.Generator().manual_seed(seed)

    def other(one):
        if one.is_floating_point() and not one.isfinite().all():
            return one.roll(1, 0)  # a mask, whose rows belong together
        return one.flatten()[torch.randperm(one.numel(), generator=generator)].view_as(one)

    return tuple(other(one) for one in example)


def first_rows(model, example, count):
    return tuple(one[:count].contiguous() if model.is_batched(one) else one for one in example)


class Distances:
    """How far results are from those of a reference, each relative to its size. What is far smaller than the largest number of
    its kind is rounding, as the gradient of a bias before a batch norm, and counts as of a thousandth of that."""

    def __init__(self, results, reference):
        self.relative = {}
        self.unequal = []
        for kind, named in reference.kinds.items():
            sizes = {name: rms(one[one.isfinite()]) for name, one in named.items() if one.is_floating_point()}
            largest = max(sizes.values(), default=0.0)
            for name, theirs in named.items():
                ours = results.kinds[kind][name]
                if theirs.is_floating_point():
                    size = max(sizes[name], 1e-3 * largest, sys.float_info.min)
                    self.relative[kind, name] = rms(difference(ours, theirs)) / size
                elif not torch.equal(ours, theirs):
                    self.unequal.append((kind, name))

    def typical(self, kind):
        return statistics.median(value for (other, _), value in self.relative.items() if other == kind)

    def require_meaning(self, limit):
        """What is allowed is a multiple of the model's own distance: beyond this limit any result would pass."""
        for kind in {kind for kind, _ in self.relative}:
            if not self.typical(kind) <= limit:
                raise Refusal(f"the {kind}", f"in float64 is another one, by {self.typical(kind):.2g} of its size: nothing can be compared",
                              "does the model draw random numbers, or divide by what is nearly zero?")

    def require_at_most(self, allowed, what):
        """`allowed` is a function of kind and name. Written so that NaN is too far."""
        far = self.unequal + [key for key, distance in self.relative.items() if not distance <= allowed(*key)]
        if not far:
            return
        kind, name = max(far, key=lambda key: self.relative.get(key, math.inf))
        distance = self.relative.get((kind, name))
        by = "" if distance is None else f", by {distance:.2g} of its size"
        others = f", and {len(far) - 1} more" if len(far) > 1 else ""
        raise Refusal(f"the {kind} {name}".strip(), f"{what} is not the model's{by}{others}", "this step cannot be compiled; nothing was written")


class Checks:
    """Compares a step with the model itself, with the example inputs and its own weights, and with others: each with its own
    random numbers."""

    def __init__(self, model, precision, training):
        self.model = model
        self.training = training
        self.examples = [model.example, varied(model.example)]
        self.wide = [Step(model, torch.float64, with_others=others) for others in (False, True)]
        self.narrow = [Step(model, precision=precision, with_others=others) for others in (False, True)]

    def check_graph(self, exported):
        """The graph in float64 computes what the model computes in float64: to 1e-9, where nothing in it is rounded to less."""
        limit = 1e-5 if exported.rounds() else 1e-9
        for seed, (step, example) in enumerate(zip(self.wide, self.examples)):
            exact = self.exact(step, example, seed)
            distances = Distances(exported.interpret(step.cast(example), step.tensors(), seed), exact)
            distances.require_at_most(lambda kind, name: limit, "of the exported step")

    def exact(self, step, example, seed):
        try:
            exact = step.eager(example, seed, self.training)
        except Exception as error:
            if seed == 0 or isinstance(error, Refusal):
                raise
            raise Refusal(self.model.name, "does not take the values of the example inputs in another order, by which a step is checked: "
                          + first_line(error), "where they are offsets of bags, give rows of one length, padded") from error
        exact.require_finite(self.model.name)
        return exact

    def check_library(self, library):
        """The library is at most four times as far from float64 as the model in its own precision, or 1e-4 of its size, which sums
        in another order may be."""
        for seed, example in enumerate(self.examples):
            self.check_on(library, example, seed)

    def check_on(self, library, example, seed):
        """Where rounding moves a value across zero, a ReLU passes its gradient on or not: deep models in float32 are then off by
        thousandths on one input in ten, in Python too. So what is too far has to be near on two of up to four other inputs."""
        try:
            self.compare(library, example, seed)
            return
        except Refusal:
            pass
        near, far = 0, 0
        for other in range(2, 6):
            try:
                self.compare(library, varied(example, other), seed)
                near += 1
            except Refusal:
                far += 1
                if far == 3:
                    raise
            if near == 2:
                return

    def compare(self, library, example, seed):
        wide, narrow = (steps[min(seed, 1)] for steps in (self.wide, self.narrow))
        exact = wide.eager(example, seed, self.training)
        eager = Distances(narrow.eager(example, seed, self.training), exact)
        eager.require_meaning(0.25 if narrow.precision == "bf16" else 0.1)
        allowed = lambda kind, name: max(4 * eager.relative[kind, name], 4 * eager.typical(kind), 1e-4)
        Distances(library.run(example, narrow.tensors(), seed), exact).require_at_most(allowed, "of the compiled step")


def smallest_batch(model, checks, libraries):
    """The sizes that a batch may have: from 1, or from 2 where the model does not take one sample."""
    rows = lambda count: first_rows(model, varied(model.example), count)
    if model.batch > 2:
        for check, library in zip(checks, libraries):
            check.check_on(library, rows(model.batch - 1), 2)
    try:
        for check, library in zip(checks, libraries):
            check.check_on(library, rows(1), 3)
    except Exception:
        return 2
    return 1


# ---- The package ----


def safetensors(tensors):
    """The bytes of a safetensors file."""
    types = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64"}
    types |= {torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL"}
    header, data = {}, []
    begin = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: -item[1].element_size()):
        if tensor.dtype not in types:
            raise Refusal(name, f"is of {tensor.dtype}, which packages lack")
        bytes_ = tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
        header[name] = {"dtype": types[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, begin + len(bytes_)]}
        begin += len(bytes_)
        data.append(bytes_)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(data)


def processor_features():
    """The instructions of this processor, all of which the compiler may have used."""
    with open("/proc/cpuinfo") as file:
        lines = [line.split(":", 1)[1].split() for line in file if line.startswith(("flags", "Features"))]
    vectors = ("avx", "amx", "fma", "f16c", "bmi", "sse", "ssse", "asimd", "sve", "bf16", "i8mm")
    return sorted(flag for flag in set(lines[0] if lines else ()) if flag.startswith(vectors))


def library_description(library):
    names = {name: library.exported.names[name] for name in library.constants}
    gradients = [name for kind, name in library.exported.outputs if kind == "GRADIENT_TO_PARAMETER"]
    return {"constants": names, "gradients": gradients, "checks": library.checks}


def description(model, precision, libraries, smallest, weights):
    """acc.json: what C++ must know, apart from the weights."""
    return {
        "format": 1,
        "checksum": zlib.crc32(weights),
        "torch": torch.__version__.split("+")[0],
        "model": type(model.module).__name__,
        "precision": precision,
        "machine": platform.machine(),
        "processor": processor_features(),
        "smallest_batch": smallest,
        "inputs": [
            {
                "dtype": str(one.dtype).removeprefix("torch."),
                "shape": [None if smallest and index == 0 and model.is_batched(one) else size for index, size in enumerate(one.shape)],
            }
            for one in model.example
        ],
        "parameters": [[name, one.requires_grad] for name, one in model.parameters.items()],
        "buffers": model.persistent_buffers(),
        "layers": {name: type(layer).__name__ for name, layer in model.module.named_modules() if name},
        "groups": {group: list(names) for group, names in model.groups.items()},
        "libraries": {name: library_description(library) for name, library in libraries.items()},
    }


def write_package(path, libraries, weights, text):
    from torch.export.pt2_archive._package import PT2ArchiveWriter, _package_aoti_files

    # The archive has the name of its file inside.
    with tempfile.TemporaryDirectory(prefix=".acc-compile-", dir=os.path.dirname(os.path.abspath(path))) as folder:
        partial = os.path.join(folder, os.path.basename(path))
        with PT2ArchiveWriter(partial) as archive:
            _package_aoti_files(archive, {name: library.files for name, library in libraries.items()})
            archive.write_bytes("data/extra/weights.safetensors", weights)
            archive.write_string("data/extra/acc.json", text)
            archive.write_string("data/extra/acc.json.crc32", str(zlib.crc32(text.encode())))
        os.replace(partial, path)


def ratio(first, second):
    """The time of a function as a share of that of another, in turns, over a second."""
    times = ([], [])
    while len(times[0]) < 5 or sum(map(sum, times)) < 1:
        for step, taken in zip((first, second), times):
            begin = time.perf_counter()
            step()
            taken.append(time.perf_counter() - begin)
    return statistics.median(times[0]) / statistics.median(times[1])


def speed(checks, library):
    """The time of the compiled step as a share of that of the model itself."""
    example = checks.examples[0]
    step = checks.narrow[0]
    module = step.module.train()

    def eager():
        module.zero_grad()
        step.results(lambda inputs: module(*inputs), example)[0].backward()

    library.run(example, step.tensors())
    return ratio(lambda: library.loader.boxed_run(list(example)), eager)


def compile_checked(model, path, precision, any_batch):
    any_batch = any_batch and model.batch is not None
    both = [Checks(model, precision, training=True), Checks(model, precision, training=False)]
    first = both[0].narrow[0].eager(model.example, 0)
    for name, gradient in first.kinds["gradient of"].items():
        if gradient is None:
            raise Refusal(name, "gets no gradient on the example inputs", "freeze it with requires_grad_(False), or leave it out")
        if gradient.is_sparse:
            raise Refusal(name, "has a sparse gradient, which a compiled step does not compute", "make the embedding without sparse=True")
    first.require_finite(model.name)
    with compiler() as folder:
        libraries = {}
        for name, checks in zip(("training", "evaluation"), both):
            checks.check_graph(Exported(checks.wide[0], model.example, checks.training, any_batch))
            libraries[name] = Library(name, Exported(checks.narrow[0], model.example, checks.training, any_batch), folder)
            checks.check_library(libraries[name])
        smallest = smallest_batch(model, both, libraries.values()) if any_batch else None
        tensors = {name: one.detach() for name, one in {**model.parameters, **model.buffers, **model.loss_buffers}.items()}
        weights = safetensors(tensors)
        text = json.dumps(description(model, precision, libraries, smallest, weights), indent=1)
        write_package(path, libraries, weights, text)
        share = speed(both[0], libraries["training"])
    print(f"{path}: {len(model.parameters)} parameters, equal to the model's on all inputs tried; a step takes {share:.2f} of its time")
    if share > 1:
        print(f"warning: the compiled step is slower than the model in Python, by {share - 1:.0%}", file=sys.stderr)


def compile_model(words, path, precision, any_batch):
    if not torch.__version__.startswith(TORCH):
        raise Refusal(f"torch {torch.__version__}", f"packages are made by torch {TORCH}x", "--python PYTHON takes another one")
    if not path.endswith(".pt2"):
        raise Refusal(path, "the name of a package ends in .pt2")
    model = load_model(words)
    try:
        compile_checked(model, path, precision, any_batch)
    except (Refusal, OSError):
        raise
    except Exception as error:
        # Most often of a model or a loss that float64, in which gradients are checked, does not fit.
        raise refusal_of(model.name, error) from error


def main(words, path, precision, batch):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # with temporary files removed
    warnings.filterwarnings("ignore")
    logging.getLogger("torch").setLevel(logging.ERROR)
    try:
        compile_model(words, path, precision, batch == "any")
    except Refusal as refusal:
        sys.exit(f"acc compile: {refusal}")
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        sys.exit(f"acc compile: {error.filename or path}: {error.strerror}")


try:
    import torch
except ImportError:
    sys.exit(f"acc compile: {sys.executable}: has no torch (--python PYTHON takes another one)")
if __name__ == "__main__":
    main(*sys.argv[1:])
