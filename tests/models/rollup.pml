/* rollup: an item that rules alone make is there exactly if it has a member, unless it holds what no rule writes.

Two rules keep a number each on one item. A rule has at most one member; its books are those of count. WAITING: the books
of the second rule are not complete, and its member came before. An application may put the whole item with an attribute
of its own (PUTS), and remove that attribute again. A worker may die with its write in flight (DEATHS). */
#ifndef WRITES
#define WRITES 3
#endif
#ifndef PUTS
#define PUTS 0
#endif
#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef REPEATS
#define REPEATS 0
#endif
#define HIDDEN 3
#define ODD 2
#ifdef WAITING
#define BEFORE true
#else
#define BEFORE false
#endif
bool first_member, second_member = BEFORE, complete = !BEFORE;  /* the books of the first rule are complete */
bool there, extra; byte number[2] = HIDDEN;        /* the item; extra: an attribute that no rule writes */
bool old_there, old_extra; byte old_number[2] = HIDDEN;  /* the image of an older record */
byte hints; byte busy; bool late, late_put, late_extra; byte late_seen[2], late_new[2];
byte writes = WRITES, puts = PUTS, deaths = DEATHS, repeats = REPEATS;
#define QUIET (busy == 0 && hints == 0 && !late && complete)
#define MEMBERS (first_member || second_member)
#define ONE(member) (member -> 1 : 0)
#define CHECK assert(!QUIET || !MEMBERS || there); assert(!QUIET || MEMBERS || !there || extra); \
  assert(!QUIET || !there || (number[0] == ONE(first_member) && number[1] == ONE(second_member)))

inline record() { /* a record of the item */
#ifndef NO_OWN_RECORDS          /* rollup: each record of the item asks for a look */
  hints++
#else
  skip
#endif
}
inline apply_put(a, b) {
  if
#ifndef NO_ABSENT_GUARD         /* rollup: an item is created only where there is none */
  :: there -> printf("  refused: there is an item\n")
  :: else ->
#else
  :: true ->
#endif
     assert(!there || !extra);  /* nothing of an application is lost */
     printf("  created: %d, %d\n", a, b); old_there = there; old_extra = extra; old_number[0] = number[0]; old_number[1] = number[1];
     there = true; extra = false; number[0] = a; number[1] = b; record()
  fi
}
inline apply_delete(a, b, had) {
  if
#ifndef NO_ATTRIBUTE_GUARD      /* rollup: the delete compares every attribute that was seen */
  :: !there || number[0] != a || number[1] != b -> printf("  refused: the item is not as it was seen\n")
  :: else ->
#else
  :: !there -> skip
  :: else ->
#endif
     assert(complete);        /* nothing goes before all books are complete */
     assert(!extra || (!had && number[0] == a && number[1] == b));  /* an application's put is not lost; a mere addition may be */
     printf("  removed\n"); old_there = there; old_extra = extra; old_number[0] = number[0]; old_number[1] = number[1];
     there = false; extra = false; number[0] = HIDDEN; number[1] = HIDDEN;
#ifndef NO_REMOVAL_RECORD       /* rollup: the record of the removal asks for a look, too */
     record()
#endif
  fi
}

active proctype application() {
end: do
  :: atomic { writes > 0 -> writes--; first_member = !first_member; printf("the first rule has a member: %d\n", first_member); hints++; CHECK }
  :: atomic { writes > 0 -> writes--; second_member = !second_member; printf("the second rule has a member: %d\n", second_member); hints++; CHECK }
  :: atomic { puts > 0 && !extra -> puts--; printf("application: puts the item with an attribute of its own\n");
       old_there = there; old_extra = extra; old_number[0] = number[0]; old_number[1] = number[1];
       there = true; extra = true; if :: number[0] = ODD :: skip fi; hints++; CHECK }
  :: atomic { extra && there -> printf("application: removes its attribute\n"); extra = false; hints++; CHECK }
  od
}
active proctype backfill() {
end: do
  :: atomic { !complete -> complete = true; printf("finish the books of the second rule\n");
#ifndef NO_SWEEP                /* rollup: a sweep of the books looks at the items that they name */
       hints++;
#endif
       CHECK }
  od
}
active proctype network() {
end: do
  :: atomic { late -> printf("the late write arrives\n"); late = false;
       if :: late_put -> apply_put(late_new[0], late_new[1]) :: else -> apply_delete(late_seen[0], late_seen[1], late_extra) fi;
       late_put = false; late_extra = false; late_seen[0] = 0; late_seen[1] = 0; late_new[0] = 0; late_new[1] = 0; CHECK }
  od
}

active [2] proctype worker() {
  bool s_there, s_extra, had, m0, m1, k1, any, none; byte a, b, x, y;
end: do
  :: atomic { hints > 0 -> if :: hints-- :: repeats > 0 -> repeats-- fi; busy++ }
     atomic {
#ifdef NO_FRESH_IMAGE           /* rollup: an item is removed only as it was read for this look, not as a record showed it */
       if :: old_there -> s_there = old_there; s_extra = old_extra; a = old_number[0]; b = old_number[1]
          :: s_there = there; s_extra = extra; a = number[0]; b = number[1] fi;
#else
       s_there = there; s_extra = extra; a = number[0]; b = number[1];
#endif
       had = extra; printf("read the item: there %d, %d, %d, extra %d\n", s_there, a, b, s_extra) }
     atomic { m0 = first_member; printf("read rule 0: member %d\n", m0) }
     atomic { k1 = complete; m1 = second_member; printf("read rule 1: complete %d, member %d\n", k1, m1) }
     atomic {
       any = m0 || (k1 && m1);
#ifdef NO_EVERY_BOOKS           /* rollup: every rule must have complete books without a member */
       none = !any;
#else
       none = k1 && !any;
#endif
       x = ONE(m0); y = (k1 -> ONE(m1) : HIDDEN);
       if
       :: !s_there && any ->
          if :: apply_put(x, y)
             :: deaths > 0 && !late -> deaths--; printf("the worker dies; its put is in flight\n"); late = true; late_put = true; late_new[0] = x; late_new[1] = y; hints++ fi
#ifdef NO_EXTRA                 /* rollup: an item with what no rule writes stays, and is reported */
       :: s_there && none ->
#else
       :: s_there && none && !s_extra ->
#endif
          if :: apply_delete(a, b, had)
             :: deaths > 0 && !late -> deaths--; printf("the worker dies; its delete is in flight\n"); late = true; late_extra = had; late_seen[0] = a; late_seen[1] = b; hints++ fi
       :: s_there && (!none || s_extra) ->
          if
          :: there && number[0] == a && number[1] == b && (x != a || (k1 && y != b)) ->
             number[0] = x; if :: k1 -> number[1] = y :: else fi;
             printf("  updated: %d, %d\n", number[0], number[1]); record()
          :: else
          fi
       :: else
       fi;
       busy--; s_there = false; s_extra = false; had = false; m0 = false; m1 = false; k1 = false; any = false; none = false; a = 0; b = 0; x = 0; y = 0; CHECK }
  od
}
