//! Versions of the tree that nobody needs any more, freed in slices: freeing what only one version of a large tree
//! had, at once, is a pause.

use super::Tree;
use super::node::{Body, Node};
use std::sync::Arc;

/// What a clone has none of.
#[derive(Default)]
pub(crate) struct Discarded {
    trees: Vec<Arc<Node>>,
}

impl Clone for Discarded {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Discarded {
    /// Takes a tree, or the one of its holders that is here.
    pub(crate) fn take(&mut self, tree: Tree) {
        self.trees.push(tree.into_root());
    }

    /// Whether nothing waits to be freed.
    pub(crate) fn is_empty(&self) -> bool {
        self.trees.is_empty()
    }

    /// Frees nodes while the budget (units of about a microsecond) lasts.
    pub(crate) fn go_on(&mut self, budget: &mut usize) {
        while *budget > 0
            && let Some(node) = self.trees.pop()
        {
            *budget -= 1;
            // Others hold it: then it was only counted down.
            let Some(node) = Arc::into_inner(node) else { continue };
            if let Body::Branch(_, children) = node.into_body() {
                self.trees.extend(children.into_iter().flatten());
            }
        }
    }
}

impl Extend<Tree> for Discarded {
    fn extend<T: IntoIterator<Item = Tree>>(&mut self, trees: T) {
        trees.into_iter().for_each(|tree| self.take(tree));
    }
}
