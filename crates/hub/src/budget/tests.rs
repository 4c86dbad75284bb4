//! The arithmetic of a budget.

use super::*;

const LIMITS: ByteLimits = ByteLimits { own_max: 100, own_min: 10, all_max: 150 };

#[test]
fn one_owner_keeps_no_more_than_it_may() {
    let (budget, owner) = (ByteBudget::new(LIMITS), ByteOwner::default());
    let first = budget.charge(&owner, 60).unwrap();
    let over = budget.charge(&owner, 41).unwrap_err();
    assert_eq!(over, OverBudget { bytes: 41, used_bytes: 60, max: 100, of_all: false });
    let second = budget.charge(&owner, 40).unwrap();
    drop(first);
    assert_eq!(budget.used_bytes(), 40);
    assert!(budget.charge(&owner, 60).is_ok());
    drop(second);
    assert_eq!(budget.used_bytes(), 0);
}

#[test]
fn all_together_keep_no_more_than_they_may_save_for_little_each() {
    let budget = ByteBudget::new(LIMITS);
    let owners: [ByteOwner; 3] = Default::default();
    let _large = [budget.charge(&owners[0], 90).unwrap(), budget.charge(&owners[1], 60).unwrap()];
    let over = budget.charge(&owners[2], 11).unwrap_err();
    assert!(over.of_all && over.used_bytes == 150, "{over}");
    let small = budget.charge(&owners[2], 10).unwrap();
    assert!(budget.charge(&owners[2], 1).is_err());
    assert!(budget.is_exceeded_by(11) && !budget.is_exceeded_by(10));
    drop(small);
    assert!(!budget.is_exceeded_by(11));
}

#[test]
fn charge_that_changes_counts_once() {
    let (budget, owner) = (ByteBudget::new(LIMITS), ByteOwner::default());
    let mut charge = budget.charge_unchecked(&owner, 200);
    assert!(budget.check(&owner, 0).is_err());
    charge.resize(30);
    assert_eq!((budget.used_bytes(), owner.used_bytes.load(Relaxed)), (30, 30));
    drop(charge);
    assert_eq!((budget.used_bytes(), owner.used_bytes.load(Relaxed)), (0, 0));
}
