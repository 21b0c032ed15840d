//! Three large generated pages: a list of links, a repository, an article.

mod article;
mod links;
mod repository;

pub use article::article;
pub use links::links;
pub use repository::repository;
