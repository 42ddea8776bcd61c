//! The job and policy files of the demo, as the host reads them.

use pgveil_tests::{Result, version::repository};

#[test]
fn the_files_of_the_demo_are_read_without_errors_or_warnings() -> Result<()> {
    let demo = repository().join("scripts/demo");
    let loaded = pgveil::config::load(&demo.join("job.yaml"))?;
    assert!(loaded.warnings.is_empty(), "{}", loaded.warnings);
    assert_eq!(loaded.value.policy.tables.len(), loaded.value.job.tables.len());
    // Its policy lies elsewhere in the container.
    let docker = pgveil::config::load_job(&demo.join("docker.yaml"))?;
    assert!(docker.warnings.is_empty(), "{}", docker.warnings);
    Ok(())
}
