"""Two short scenarios that hold, one of copies and one of gathered attributes."""

from __future__ import annotations

from tests.peers.cases import entries
from tests.peers.runner import Case
from tests.peers.scenarios import read

HEAD = """
scenarios:
- id: TOOTH
  tables: {users: id, posts: id}
  rules:
  - {table: posts, attr: name, copy: {path: [{to: users, by: user_id}], attr: name}}
  initial:
    users: [{id: u, name: Ann}, {id: w, name: Wim}]
    posts: [{id: p, user_id: u}, {id: q, user_id: u}]
  steps:
"""
STORY = """
  - update: {table: users, key: u, set: {name: Anna}}
    expect: {posts: {p: {name: Anna}, q: {name: Anna}}}
  - put: {table: posts, item: {id: p, user_id: u, name: stale}}
  - update: {table: posts, key: p, set: {note: x}}
    expect: {posts: {p: {name: Anna}}}
    max_target_writes: 0
  - update: {table: posts, key: p, set: {user_id: w}}
    expect: {posts: {p: {name: Wim}}}
  - update: {table: posts, key: p, set: {note: y}}
  - update: {table: users, key: u, remove: [name]}
    expect: {posts: {q: {name: <absent>}}}
  - update: {table: users, key: u, set: {name: Anne}}
    expect: {posts: {q: {name: Anne}}}
    max_target_writes: 1
  - delete: {table: users, key: u}
    expect: {posts: {q: {name: <absent>}}}
"""
GATHERED = """
scenarios:
- id: JAW
  tables: {users: id, posts: id, tags: id}
  rules:
  - {table: users, attr: posts, agg: map, path: [{from: posts, 'on': user_id}], fields: [line]}
  - {table: users, attr: words, agg: sum, path: [{from: posts, 'on': user_id}], of: words}
  - {table: posts, attr: line, text: [{attr: title}, {attr: note}], sep: ' '}
  - {table: posts, attr: tags, agg: map, path: [{to: tags, by: tag_ids}], fields: [name]}
  initial:
    users: [{id: u}, {id: v}]
    posts: [{id: p, user_id: u, title: one, tag_ids: [a, b], words: 2}]
    tags: [{id: a, name: A}]
  steps:
  - put: {table: posts, item: {id: q, user_id: u, title: two, words: 3}}
  - update: {table: posts, key: q, set: {words: 5}}
    expect: {users: {u: {posts: {p: {line: one}, q: {line: two}}, words: 7}}}
  - put: {table: tags, item: {id: b, name: B}}
    expect: {posts: {p: {tags: {a: {name: A}, b: {name: B}}}}}
  - update: {table: posts, key: p, set: {tag_ids: [b], note: more}}
    expect: {posts: {p: {tags: {b: {name: B}}}}, users: {u: {posts.p.line: one more}}}
  - update: {table: posts, key: p, set: {user_id: v}}
    expect: {users: {u: {posts: {q: {line: two}}, words: 5}, v: {posts: {p: {line: one more}}, words: 2}}}
  - put: {table: users, item: {id: u, words: 1}}
    expect: {users: {u: {posts: {q: {line: two}}, words: 5}}}
  - delete: {table: posts, key: p}
    expect: {users: {v: {posts: {}, words: 0}}}
"""


def case_of(steps: str, head: str = HEAD) -> Case:
    (case,) = entries(read(head + steps, "teeth"))
    assert isinstance(case, Case)
    return case
