"""Compare agents on a user's own table: `compare` runs them and returns results; `comparison` returns the spec of the
sweep.
"""

from banditlab.comparison._agents import CONTEXT_FREE as CONTEXT_FREE
from banditlab.comparison._agents import chosen_agents as chosen_agents
from banditlab.comparison._earlier import Compared as Compared
from banditlab.comparison._many import Comparisons as Comparisons
from banditlab.comparison._many import is_many as is_many
from banditlab.comparison._many import name_of_many as name_of_many
from banditlab.comparison._many import prepared_many as prepared_many
from banditlab.comparison._sweep import TABLE as TABLE
from banditlab.comparison._sweep import Comparison as Comparison
from banditlab.comparison._sweep import compare as compare
from banditlab.comparison._sweep import comparison as comparison
from banditlab.comparison._sweep import default_folder as default_folder
from banditlab.comparison._sweep import plain_name as plain_name
from banditlab.comparison._sweep import prepared as prepared
from banditlab.comparison._sweep import surveyed as surveyed
from banditlab.envs.survey import Note as Note
from banditlab.envs.survey import Survey as Survey
from banditlab.errors import FaultyTableError as FaultyTableError
