"""Protects values that a rule did not write, as long as no backfill or operator has accepted the rule.

Invariant: an unaccepted rule replaces, zeroes or removes a value only if the rule would have made that value from the
old images of the batch. It deletes no item. Everything else it parks, and it still sets what is missing. A
rule that reads or keeps books is never in `Bounds.unaccepted`: it writes nothing before a backfill completes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from sync_rules.model.errors import StoreError
from sync_rules.model.items import Alteration, Change, ItemKey
from sync_rules.model.limits import Bounds
from sync_rules.model.values import AttributeValue, Item, Path, get
from sync_rules.model.writes import find_differences
from sync_rules.pipeline.sources import Keys, Sources, Target
from sync_rules.rules.families import Part, TargetRule
from sync_rules.rules.rule import Blocked, Rule, Waiting

NOT_ACCEPTED: Final = "NotAccepted"  # the reason of what is parked, before the way to accept the rule
OLD_IMAGES_MAX: Final = 10  # of one item in one batch, the newest

Images = Mapping[ItemKey, tuple[Item, ...]]


def collect_old_images(changes: Iterable[Change]) -> Images:
    """The old images of each item that changed in a batch, in the order of their records."""
    found: dict[ItemKey, tuple[Item, ...]] = {}
    for change in changes:
        if change.old is not None:
            found[change.key] = (*found.get(change.key, ()), change.old)[-OLD_IMAGES_MAX:]
    return found


def protect_target(
    rule: TargetRule, target: Target, changes: Mapping[Path, AttributeValue | None], sources: Sources, bounds: Bounds
) -> Blocked | None:
    """Return the reason why a rule may not make these changes on a target; None if it may."""
    if rule.name not in bounds.unaccepted:
        return None
    altered = [path for path in changes if get(target.image, path) is not None]
    earlier = _list_earlier(rule, target, sources, bounds) if altered else ()
    if not altered or any(_can_make_values(rule, target, altered, *each) for each in earlier):
        return None
    return block_unaccepted_rule(rule, bounds)


def protect_part(part: Part, target: Item | None, alteration: Alteration, bounds: Bounds) -> Blocked | None:
    """Return the reason why a part may not be written; None if it may. `target`: the item that holds the part, as
    read.
    """
    rule = part.rule
    if rule.name not in bounds.unaccepted or alteration is Alteration.SET:
        return None
    images = () if part.source is None else bounds.old_images.get(part.source, ())
    if any(rule.write_for(part, target, image) is None for image in images):
        return None
    return block_unaccepted_rule(rule, bounds)


def block_unaccepted_rule(rule: Rule, bounds: Bounds) -> Blocked:
    """Return the reason to park the changes of an unaccepted rule, with the way to accept the rule."""
    return Blocked(f"{NOT_ACCEPTED}: {bounds.unaccepted[rule.name]}")


def _can_make_values(rule: TargetRule, target: Target, paths: Iterable[Path], sources: Sources, image: Item) -> bool:
    """True if a rule makes the present values at these paths from older sources and an older image of the target."""
    found = sources.of(rule, target)
    if isinstance(found, StoreError | Blocked | Waiting):
        return False
    desired = rule.compute_values(found, image)
    if desired is None or isinstance(desired, Blocked):
        return False
    return all(path in desired for path in paths) and not find_differences(
        target.image, {path: desired[path] for path in paths}
    )


def _list_earlier(rule: TargetRule, target: Target, sources: Sources, bounds: Bounds) -> Iterator[tuple[Sources, Item]]:
    """The sources and the image of a target with old images in place of present items, one batch record at a time."""
    place = target.key, rule.name
    members = sources.members.get(place, ())
    listed = () if isinstance(members, StoreError | Blocked) else members
    hinted = target.members if place in sources.members else ()  # a member that was removed is listed no more
    keys = dict.fromkeys((*rule.source_keys(target.image), *listed, *hinted))
    old = {key: images for key in (*keys, target.key) if (images := bounds.old_images.get(key))}
    for number in range(max(map(len, old.values()), default=0)):
        earlier = {key: images[min(number, len(images) - 1)] for key, images in old.items()}
        image = earlier.get(target.key, target.image)
        if rule.source_keys(image) == rule.source_keys(target.image):
            items = {key: earlier.get(key, sources.items.get(key)) for key in keys}
            belonging: dict[tuple[ItemKey, str], Keys] = {}
            if place in sources.members:
                belonging[place] = tuple(dict.fromkeys((*listed, *hinted)))
            yield Sources(items=items, members=belonging, marks=sources.marks), image
