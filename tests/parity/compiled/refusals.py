# SPDX-License-Identifier: Apache-2.0
"""refusals.py COMPILER: what `acc compile` cannot compile rightly it refuses in one line, and writes nothing."""
import contextlib
import importlib.util
import math
import os
import random
import sys
import tempfile
import types
import unittest
import warnings

import torch
from torch import nn
from torch.nn import functional

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import models

specification = importlib.util.spec_from_file_location("compiler", sys.argv.pop())
compiler = importlib.util.module_from_spec(specification)
specification.loader.exec_module(compiler)


class Function(nn.Module):
    """A layer, and what a function makes of it."""

    def __init__(self, function):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.register_buffer("count", torch.zeros(()))
        self.function = function

    def forward(self, inputs):
        return self.function(self, inputs)


def made(function, loss=lambda output: output.square().mean(), size=4):
    return {"model": Function(function), "inputs": (torch.randn(size, 3),), "loss": loss}


def assign(net, inputs):
    net.count = net.count + 1
    return net.layer(inputs)


def count(net, inputs):
    net.steps = getattr(net, "steps", 0) + 1
    return net.layer(inputs)


def by_chance(net, inputs):
    return net.layer(inputs) * (2 if random.random() < 0.01 else 1)


def count_privately(net, inputs):
    net._steps = getattr(net, "_steps", 0) + 1
    return net.layer(inputs)


def count_in_an_object(net, inputs):
    net.state.steps += 1
    return net.layer(inputs)


def by_chance_of_numpy(net, inputs):
    import numpy

    return net.layer(inputs) * (2 if numpy.random.rand() < 0.01 else 1)


class Counting(nn.Module):
    """A loss that counts its calls."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, output):
        self.calls += 1
        return output.square().mean()


def of_its_type(net, inputs):
    return net.layer(inputs) * (3 if inputs.dtype == torch.float64 else 1)


def unused(net, inputs):
    return inputs * net.layer.weight.sum()


def of_one_size(net, inputs):
    return net.layer(inputs).reshape(2, 6)


def of_an_input(net, inputs):
    inputs.mul_(2)
    return net.layer(inputs)


def of_a_value(net, inputs):
    output = net.layer(inputs)
    return output if output.sum() > 0 else -output


def infinite(net, inputs):
    return net.layer(inputs) / 0


class Refusals(unittest.TestCase):
    def refusal(self, factory, path="net.pt2", batch="any", precision="no"):
        sys.modules["factories"] = type(sys)("factories")
        sys.modules["factories"].made = factory
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, path)
            with self.assertRaises(SystemExit) as raised:
                compiler.main("factories:made", path, precision, batch)
            self.assertEqual(os.listdir(folder), [])
        text = str(raised.exception)
        self.assertNotIn("\n", text)
        self.assertTrue(text.startswith("acc compile: "), text)
        return text

    def test_gradients_through_the_fused_attention(self):
        with unittest.mock.patch.object(compiler, "decompositions", torch.export.default_decompositions):
            text = self.refusal(models.gpt)
        self.assertRegex(text, "the gradient of .*: of the exported step is not the model's, by .* of its size, and . more")

    def test_weights_that_would_be_numbers_in_the_code(self):
        options = {**compiler.OPTIONS, "always_keep_tensor_constants": False}
        with unittest.mock.patch.object(compiler, "OPTIONS", options):
            text = self.refusal(lambda: made(lambda net, inputs: net.layer(inputs)))
        self.assertRegex(text, "of the compiled step is not the model's")

    def test_a_buffer_that_forward_assigns(self):
        self.assertIn("the buffer count: of the exported step is not the model's", self.refusal(lambda: made(assign)))

    def test_state_that_is_no_tensor(self):
        self.assertIn("steps: changes in forward, and would be a constant (what changes must be a buffer", self.refusal(lambda: made(count)))
        self.assertIn("the state of Python's random: changes in forward", self.refusal(lambda: made(by_chance)))

    def test_state_that_is_no_attribute_of_a_plain_name(self):
        self.assertIn("_steps: changes in forward", self.refusal(lambda: made(count_privately)))

        def with_an_object():
            given = made(count_in_an_object)
            given["model"].state = types.SimpleNamespace(steps=0)
            return given

        self.assertIn("state.steps: changes in forward", self.refusal(with_an_object))
        self.assertIn("loss.calls: changes in forward", self.refusal(lambda: made(lambda net, inputs: net.layer(inputs), loss=Counting())))
        self.assertIn("the state of numpy's random: changes in forward", self.refusal(lambda: made(by_chance_of_numpy)))

    def test_tensors_that_share_memory(self):
        def tied_by_data():
            net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
            net[1].weight.data = net[0].weight.data
            return {**made(None), "model": net}

        def buffer_of_a_parameter():
            net = nn.Linear(3, 3)
            net.register_buffer("last", net.weight.data[2])
            return {**made(None), "model": net}

        self.assertRegex(self.refusal(tied_by_data), r"[01].weight: shares memory with [01].weight, and would be .* \(tie parameters by assignment")
        self.assertIn("last: shares memory with weight", self.refusal(buffer_of_a_parameter))

    def test_hooks_of_gradients(self):
        def hooked(register):
            net = nn.Linear(3, 3)
            getattr(net.weight, register)(lambda gradient: None)
            return {**made(None), "model": net}

        for register in ("register_hook", "register_post_accumulate_grad_hook"):
            self.assertIn("weight: has a hook of its gradient", self.refusal(lambda: hooked(register)))

    def test_layers_in_a_mode_of_their_own(self):
        def frozen(model):
            net = model(nn.Linear(3, 3), nn.BatchNorm1d(3))
            net[1].eval()
            return {**made(None), "model": net}

        self.assertIn("layer 1: is in evaluation mode, which the model's train() does not keep", self.refusal(lambda: frozen(nn.Sequential)))

        class Kept(nn.Sequential):
            def train(self, mode=True):
                super().train(mode)
                self[1].eval()
                return self

        self.assertFalse(compiler.Model("frozen", frozen(Kept)).module[1].training)

    def test_the_old_norms_of_weights(self):
        for old in ("weight_norm", "spectral_norm"):
            text = self.refusal(lambda: {**made(None), "model": nn.Sequential(getattr(nn.utils, old)(nn.Linear(3, 3)))})
            self.assertIn(f"layer 0: uses torch.nn.utils.{old}", text)
            self.assertIn(f"(use torch.nn.utils.parametrizations.{old})", text)

    def test_distances_in_which_any_result_would_pass(self):
        model = compiler.Model("model", made(of_its_type))
        checks = compiler.Checks(model, "no", training=True)
        with self.assertRaisesRegex(compiler.Refusal, "in float64 is another one, by .* of its size: nothing can be compared"):
            checks.compare(None, model.example, 0)

    def test_a_tensor_that_the_model_does_not_have(self):
        factor = nn.Parameter(torch.ones(3))
        text = self.refusal(lambda: made(lambda net, inputs: net.layer(inputs) * factor))
        self.assertIn("computes with a tensor that is no parameter, buffer or input of the model", text)
        text = self.refusal(lambda: made(lambda net, inputs: net.layer(inputs), loss=lambda output: (output * factor.detach()).sum()))
        self.assertIn("weights of classes are a buffer of nn.CrossEntropyLoss(weight=...) as the loss", text)

    def test_sparse_gradients(self):
        for layer in (nn.Embedding(9, 3, sparse=True), nn.EmbeddingBag(9, 3, mode="sum", sparse=True)):
            given = {"model": nn.Sequential(layer), "inputs": (torch.randint(9, (4, 3)),), "loss": lambda output: output.square().mean()}
            self.assertIn("0.weight: has a sparse gradient, which a compiled step does not compute (make the embedding without sparse=True)",
                          self.refusal(lambda: given))

    def test_values_that_have_an_order(self):
        class Bags(nn.Module):
            def __init__(self):
                super().__init__()
                self.words = nn.EmbeddingBag(9, 3)

            def forward(self, words, offsets):
                return self.words(words, offsets)

        given = {"model": Bags(), "inputs": (torch.randint(9, (8,)), torch.tensor([0, 2, 5])), "loss": lambda output: output.square().mean()}
        self.assertRegex(self.refusal(lambda: given), "does not take the values of the example inputs in another order, .*: RuntimeError: offsets.0. has to be 0.*padded")

    def test_a_loss_that_is_trained_or_changes(self):
        class Averaging(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("mean", torch.zeros(3))

            def forward(self, output):
                self.mean.add_(output.detach().mean(0))
                return (output - self.mean).square().mean()

        class Scaled(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(()))

            def forward(self, output):
                return (output * self.scale).square().mean()

        through = lambda net, inputs: net.layer(inputs)
        self.assertIn("loss.mean: is changed by the loss, which may have constants only", self.refusal(lambda: made(through, loss=Averaging())))
        self.assertIn("made, loss: has the parameter scale, which would not be trained", self.refusal(lambda: made(through, loss=Scaled())))

    def test_a_parameter_without_a_gradient(self):
        self.assertIn("layer.bias: gets no gradient on the example inputs (freeze it", self.refusal(lambda: made(unused)))

    def test_a_model_for_one_size_of_batches(self):
        self.assertIn("computes with batches of 4 only (--fixed_batch", self.refusal(lambda: made(of_one_size)))

    def test_inputs_that_forward_changes(self):
        self.assertIn("changes its inputs in place", self.refusal(lambda: made(of_an_input)))

    def test_a_branch_on_values(self):
        self.assertIn("cannot be exported: ", self.refusal(lambda: made(of_a_value)))

    def test_a_loss_that_is_not_finite(self):
        self.assertIn("the loss is not finite on the example inputs, or", self.refusal(lambda: made(infinite)))

    def test_a_loss_that_is_no_scalar(self):
        self.assertIn("the loss is no scalar tensor", self.refusal(lambda: made(unused, loss=lambda output: output)))

    def test_what_a_factory_returns(self):
        self.assertIn("does not return a dictionary with model and inputs", self.refusal(lambda: 3))
        self.assertIn("returns the unknown key 'target'", self.refusal(lambda: {**made(unused), "target": 3}))
        self.assertIn("inputs is no tuple of tensors", self.refusal(lambda: {**made(unused), "inputs": torch.ones(3)}))
        self.assertIn("has no parameter 'head'", self.refusal(lambda: {**made(unused), "groups": {"slow": ["head"]}}))

    def test_exceptions_of_the_users_code_name_its_line(self):
        def broken():
            raise ValueError("no data")

        self.assertRegex(self.refusal(broken), r"refusals.py:\d+: ValueError: no data")
        self.assertRegex(self.refusal(lambda: made(lambda net, inputs: inputs @ inputs)), r"refusals.py:\d+: RuntimeError: mat1")

    def test_another_torch(self):
        with unittest.mock.patch.object(torch, "__version__", "2.9.1"):
            self.assertIn("torch 2.9.1: packages are made by torch 2.11.x", self.refusal(models.mlp))

    def test_a_name_that_ends_otherwise(self):
        self.assertIn("the name of a package ends in .pt2", self.refusal(models.mlp, path="net.zip"))


class Masks(unittest.TestCase):
    """A buffer of -inf is a number like others."""

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)
            self.register_buffer("mask", torch.full((5, 5), -math.inf).triu(1))

        def forward(self, inputs):
            values = self.layer(inputs)
            return ((values @ values.transpose(1, 2) + self.mask).softmax(-1) @ values).square().mean()

    def test_are_compared(self):
        model = compiler.Model("masked", {"model": self.Attention(), "inputs": (torch.randn(3, 5, 4),)})
        checks = compiler.Checks(model, "no", training=True)
        checks.check_graph(compiler.Exported(checks.wide[0], model.example, True, any_batch=True))

    def test_other_masks_are_told_apart(self):
        def distance(ours, theirs):
            kinds = [compiler.Results(torch.ones(()), [], {}, {"mask": torch.tensor([0.0, one])}) for one in (ours, theirs)]
            return compiler.Distances(*kinds).relative["buffer", "mask"]

        self.assertEqual(distance(-math.inf, -math.inf), 0)
        for pair in ((1.0, -math.inf), (-math.inf, 1.0), (math.inf, -math.inf), (math.nan, -math.inf)):
            self.assertFalse(distance(*pair) <= 1, pair)


class Losses(unittest.TestCase):
    def test_weights_of_classes_are_constants_of_the_step(self):
        loss = nn.CrossEntropyLoss(weight=torch.arange(1.0, 6))
        given = {"model": nn.Linear(3, 5), "inputs": (torch.randn(4, 3),), "targets": (torch.arange(4),), "loss": loss}
        model = compiler.Model("weighted", given)
        checks = compiler.Checks(model, "no", training=True)
        exported = compiler.Exported(checks.wide[0], model.example, True, any_batch=True)
        checks.check_graph(exported)
        self.assertIn("loss.weight", exported.names.values())


class Replacements(unittest.TestCase):
    """What takes the place of PyTorch's random numbers keeps what its functions promise."""

    NAMES = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
    SHAPES = {"dropout1d": (9, 5), "dropout2d": (9, 5, 4), "dropout3d": (9, 2, 3, 4)}

    def results(self, name, shape, **options):
        """Which values there are, and the shape of what is dropped together, without PyTorch's numbers and with them."""
        for replaced in (compiler.reproducible_dropout(), contextlib.nullcontext()):
            torch.manual_seed(0)
            given = torch.ones(shape)
            with replaced:
                output = getattr(functional, name)(given, 0.3, True, **options)
            together = [dim for dim in range(output.dim()) if (output == output.select(dim, 0).unsqueeze(dim)).all()]
            yield output.unique().tolist(), together, (given == output).all().item()

    def test_what_is_dropped_together_and_what_is_kept(self):
        warnings.simplefilter("ignore")  # of dropout2d, about three dimensions
        for name in self.NAMES:
            for shape in {self.SHAPES.get(name, (9, 5, 4)), (7, 9, 5, 4) if name != "dropout1d" else (7, 9, 5)}:
                for inplace in (False, True):
                    ours, theirs = self.results(name, shape, inplace=inplace)
                    for value, other in zip(ours[0], theirs[0], strict=True):
                        self.assertAlmostEqual(value, other, 5, name)
                    self.assertEqual(ours[1:], theirs[1:], (name, shape, inplace))

    def test_draws_are_those_of_float32(self):
        like = torch.zeros(5, dtype=torch.float64)
        for draw in (
            lambda one: torch.randn_like(one),
            lambda one: torch.rand(5, dtype=one.dtype),
            lambda one: torch.empty_like(one).normal_(1, 2),
            lambda one: torch.empty_like(one).exponential_(),
            lambda one: torch.normal(one, one + 1),
            lambda one: torch.bernoulli(one + 0.5),
        ):
            with compiler.float32_draws():
                torch.manual_seed(0)
                wide = draw(like)
                torch.manual_seed(0)
                narrow = draw(like.float())
            self.assertEqual(wide.dtype, torch.float64)
            self.assertTrue(torch.equal(wide.float(), narrow))


class Lookup(nn.Module):
    """A layer of what a function looks up in a table of ten rows."""

    def __init__(self, function):
        super().__init__()
        self.table = nn.Parameter(torch.randn(10, 4))
        self.function = function

    def forward(self, inputs):
        return self.function(self.table, inputs)


class Indices(unittest.TestCase):
    """Indices out of range are noticed by the graph, and do not reach what looks them up."""

    def graph(self, function, training):
        given = {"model": Lookup(function), "inputs": (torch.randint(10, (4, 3)),), "loss": lambda output: output.square().mean()}
        step = compiler.Step(compiler.Model("lookup", given))
        return compiler.Exported(step, step.model.example, training, any_batch=True).program.module()

    def check(self, function, lowest=0):
        for training in (True, False):
            graph = self.graph(function, training)
            checks = compiler.CheckedIndices(graph).checks
            graph.graph.set_codegen(torch.fx.CodeGen())  # which returns all results
            graph.recompile()
            self.assertEqual(list(checks), [f"tensor 1 has an index or a label that is not from {lowest} to 9"])
            for row, passes in ((lowest, True), (9, True), (lowest - 1, False), (10, False), (10**9, False)):
                inputs = torch.randint(10, (5, 3))
                inputs[2, 1] = row
                self.assertEqual(graph(inputs)[-1].tolist(), [passes], row)

    def test_of_embeddings(self):
        self.check(lambda table, inputs: functional.embedding(inputs, table))

    def test_of_rows(self):
        self.check(lambda table, inputs: table[inputs], lowest=-10)

    def test_of_bags(self):
        for mode in ("sum", "mean", "max"):
            self.check(lambda table, inputs: functional.embedding_bag(inputs, table, mode=mode, padding_idx=3))
        self.check(lambda table, inputs: functional.embedding_bag(
            inputs, table, mode="sum", per_sample_weights=table.sum() * torch.ones(inputs.shape, dtype=table.dtype)))

    def test_of_one_hot(self):
        self.check(lambda table, inputs: functional.one_hot(inputs, 10).to(table.dtype) @ table)
        self.check(lambda table, inputs: functional.one_hot(inputs, num_classes=10).to(table.dtype) @ table)

    def test_one_hot_is_pytorchs(self):
        classes = torch.randint(7, (2, 3))
        with compiler.checked_one_hot():
            ours = functional.one_hot(classes, 7), functional.one_hot(classes, num_classes=8), functional.one_hot(classes)
        for one, theirs in zip(ours, (functional.one_hot(classes, 7), functional.one_hot(classes, 8), functional.one_hot(classes)), strict=True):
            self.assertEqual(one.dtype, theirs.dtype)
            self.assertTrue(torch.equal(one, theirs))


unittest.main()
