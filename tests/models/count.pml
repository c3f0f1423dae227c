/* count: the number on the parent is the number of its children, or is not written yet.

Two parents, one or two children. The ledger has an entry for each child that was counted, and a total for each parent. The
number is a copy of the total, shown only while the mark says that the books are complete. A backfill looks at every child,
then marks the books complete. OLD_CHILDREN: the first children came before the rule, and no record shows them. RESTARTS:
another version of the rule takes the books over and begins them again, empty. */
#ifndef CHILDREN
#define CHILDREN 1
#endif
#define PARENTS 2
#define NONE PARENTS
#define HIDDEN 9
#ifndef WRITES
#define WRITES 2
#endif
#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef REPEATS
#define REPEATS 0
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif
#ifdef OLD_CHILDREN
#define FIRST 0
#else
#define FIRST NONE
#endif
byte child[CHILDREN] = FIRST;   /* its parent; NONE: it does not exist */
byte entry[CHILDREN] = NONE;    /* the parent that the ledger counts it for */
byte total[PARENTS], number[PARENTS] = HIDDEN;
byte hints[CHILDREN], hint_count, shows[PARENTS], show_count;
bool complete, looked[CHILDREN]; byte unswept = CHILDREN;          /* the mark; the sweep */
byte busy; bool late; byte late_child, late_seen, late_new;
byte writes = WRITES, deaths = DEATHS, repeats = REPEATS, restarts = RESTARTS;
#define QUIET (busy == 0 && hint_count == 0 && show_count == 0 && !late && complete)
#define ONE(condition) ((condition) -> 1 : 0)
#if CHILDREN == 1
#define CHILDREN_OF(p) ONE(child[0] == p)
#define ALL_LOOKED looked[0]
#define ENTRIES_OF(p) ONE(entry[0] == p)
#else
#define ALL_LOOKED (looked[0] && looked[1])
#define CHILDREN_OF(p) (ONE(child[0] == p) + ONE(child[1] == p))
#define ENTRIES_OF(p) (ONE(entry[0] == p) + ONE(entry[1] == p))
#endif
#define SHOWN(p) (number[p] == HIDDEN -> 0 : number[p])
#define CHECK assert(total[0] == ENTRIES_OF(0) && total[1] == ENTRIES_OF(1)); \
  assert(!QUIET || (SHOWN(0) == CHILDREN_OF(0) && SHOWN(1) == CHILDREN_OF(1)))

inline hint(k) { hints[k]++; hint_count++ }
inline look_at(p) { shows[p]++; show_count++ }

inline book(seen, new) {
  if :: seen != NONE -> total[seen]--; look_at(seen) :: else fi;
  if :: new != NONE -> total[new]++; look_at(new) :: else fi
}

inline apply_entry(k, seen, new) {
  if
#ifdef NO_ENTRY_GUARD           /* count: the transaction compares the entry as it was read */
  :: true ->
#else
  :: entry[k] == seen ->
#endif
     printf("  written: child %d counts for parent %d, no longer for %d\n", k, new, seen); entry[k] = new;
#ifdef NO_TRANSACTION           /* count: entry and totals are one transaction; here the worker may die between them */
     if :: deaths > 0 -> deaths--; printf("  the worker dies before it writes the totals\n") :: book(seen, new) fi;
#else
     book(seen, new);
#endif
#ifndef NO_ENTRY_RECORDS        /* count: records of entries ask for a look too */
     hint(k)
#endif
  :: else -> printf("  refused: the entry of child %d is not as it was read\n", k)
  fi
}

active proctype application() {
  byte k, p;
end: do
  :: atomic { writes > 0 -> select(k : 0 .. CHILDREN - 1); select(p : 0 .. PARENTS);
       if :: child[k] != p -> writes--; printf("application: the parent of child %d is %d\n", k, p); child[k] = p; hint(k) :: else fi; k = 0; p = 0; CHECK }
  :: atomic { restarts > 0 && complete -> restarts--; printf("another version of the rule begins the books again\n");
       complete = false; unswept = CHILDREN; total[0] = 0; total[1] = 0;
       do :: k < CHILDREN -> entry[k] = NONE; looked[k] = false; k++ :: else -> break od; k = 0 }
  od
}

active proctype network() {
end: do :: atomic { late -> printf("the late transaction arrives\n"); apply_entry(late_child, late_seen, late_new); late = false; late_child = 0; late_seen = 0; late_new = 0; CHECK } od
}

active proctype backfill() {
  byte k;
end: do
  :: atomic { unswept > 0 -> unswept--; k = unswept; printf("backfill: child %d\n", k); hint(k); k = 0 }
#ifdef NO_WAITING               /* count: the backfill finishes the books before its looks are answered */
  :: atomic { unswept == 0 && !complete ->
#else
  :: atomic { unswept == 0 && !complete && ALL_LOOKED ->
#endif
       complete = true;
       printf("finish the books\n"); look_at(0); look_at(1); CHECK }
  od
}

active [2] proctype worker() {
  byte k, seen, new, p, begun; bool marked, good;
end: do
  :: atomic { hint_count > 0 -> if :: hints[0] > 0 -> k = 0 :: hints[CHILDREN - 1] > 0 -> k = CHILDREN - 1 fi;
       if :: hints[k]--; hint_count-- :: repeats > 0 -> repeats-- fi; busy++; printf("look at child %d\n", k) }
     atomic { seen = entry[k]; printf("read the entry of child %d: parent %d\n", k, seen) }
     atomic { new = child[k]; printf("read child %d: parent %d\n", k, new) }
     atomic {
       if
       :: seen == new -> skip
       :: else ->
          if
          :: apply_entry(k, seen, new)
#ifndef NO_TRANSACTION
          :: deaths > 0 && !late -> deaths--; printf("the worker dies; its transaction is in flight\n"); late = true; late_child = k; late_seen = seen; late_new = new; hint(k)
#endif
          fi
       fi; looked[k] = true; busy--; k = 0; seen = 0; new = 0; CHECK }
  :: atomic { show_count > 0 -> if :: shows[0] > 0 -> p = 0 :: shows[1] > 0 -> p = 1 fi; shows[p]--; show_count--; busy++; printf("look at the number of parent %d\n", p) }
#ifdef NO_MARK_BEFORE           /* count: the mark must be complete before the total is read */
     atomic { marked = true; begun = restarts }
#else
     atomic { marked = complete; begun = restarts; printf("read the mark: complete %d\n", marked) }
#endif
     atomic { seen = total[p]; good = complete && ALL_LOOKED; printf("read the total of parent %d: %d\n", p, seen) }
     atomic {
       if
#ifdef NO_MARK_AFTER            /* count: and it must be complete after that */
       :: marked && number[p] != seen ->
#elif defined(NO_SAME_BOOKS)    /* count: and it must be the mark of the same books, which did not begin again meanwhile */
       :: marked && complete && number[p] != seen ->
#else
       :: marked && complete && begun == restarts && number[p] != seen ->
#endif
          assert(good);         /* no number from books that are not complete */
          printf("  written: the number of parent %d is %d\n", p, seen); number[p] = seen; look_at(p)
       :: else
       fi; busy--; p = 0; seen = 0; begun = 0; marked = false; good = false; CHECK }
  od
}
