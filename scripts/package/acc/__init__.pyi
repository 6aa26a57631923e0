from acc.notebook import debug_launcher as debug_launcher
from acc.notebook import notebook_launcher as notebook_launcher
from acc.notebook import write_basic_config as write_basic_config
from acc.progress import section as section
from acc.progress import step as step
