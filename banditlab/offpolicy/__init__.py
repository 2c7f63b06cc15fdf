"""Off-policy evaluation: what another policy would have earned, from a log of actions, propensities and reward bits."""

from banditlab.offpolicy.evaluation import Evaluation as Evaluation
from banditlab.offpolicy.evaluation import evaluate as evaluate
from banditlab.offpolicy.intervals import FixedBound as FixedBound
from banditlab.offpolicy.intervals import RunningBound as RunningBound
from banditlab.offpolicy.log import Log as Log
from banditlab.offpolicy.models import RewardModel as RewardModel
from banditlab.offpolicy.models import estimated_propensities as estimated_propensities
from banditlab.offpolicy.models import predicted_rewards as predicted_rewards
