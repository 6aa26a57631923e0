# SPDX-License-Identifier: Apache-2.0
import sys

from acc.program import become

become(sys.argv[1:])
