// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/make_board.hpp"

#include "support/catch.hpp"
