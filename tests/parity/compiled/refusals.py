# SPDX-License-Identifier: Apache-2.0
"""refusals.py COMPILER: what `acc compile` cannot compile rightly it refuses in one line, and writes nothing."""
import contextlib
import importlib.util
import os
import random
import sys
import tempfile
import unittest

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
        with unittest.mock.patch.object(compiler, "exact_attention", contextlib.nullcontext):
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

    def test_a_tensor_that_the_model_does_not_have(self):
        factor = nn.Parameter(torch.ones(3))
        text = self.refusal(lambda: made(lambda net, inputs: net.layer(inputs) * factor))
        self.assertIn("computes with a tensor that is no parameter, buffer or input of the model", text)

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


unittest.main()
