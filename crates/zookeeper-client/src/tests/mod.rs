mod connections;
mod records;
