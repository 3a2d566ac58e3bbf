"""An Airflow 3 DAG: the release goes out only on nights on which all gates hold."""

from datetime import UTC, datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

with DAG(
    dag_id="gpupif_nightly",
    schedule="0 2 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
):
    # A gate that failed (3), bad input (2) and anything else (1) fail the task. Another run that is on (4) skips it,
    # and with it the release.
    risk = BashOperator(
        task_id="risk",
        bash_command="/opt/gpupif/bin/gpupif nightly run /etc/gpupif/risk.toml",
        skip_on_exit_code=4,
        env={"RISK_WEBHOOK": "{{ conn.risk_webhook.password }}"},
        append_env=True,
        execution_timeout=timedelta(hours=6),
        do_xcom_push=False,
    )
    release = BashOperator(task_id="release", bash_command="/usr/local/bin/release-registry", do_xcom_push=False)
    risk >> release
