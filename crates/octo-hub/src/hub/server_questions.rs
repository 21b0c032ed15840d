//! Questions of servers to the client of a call: policy, limits and audit, as for calls.

use crate::hub::Hub;
use crate::hub::nested_calls::trace_parent;
use crate::pipeline::audit_record::AuditRecord;
use crate::pipeline::policy::QuestionRequest;
use octo_model::{CallId, RecordedMethod, ToolError};
use octo_ports::{CallStarted, Outcome};
use octo_toolkit::{CallHeader, QuestionRecord, ServerQuestion};

impl Hub {
    /// Records a question, and refuses it if the policy denies it or a limit is exceeded.
    pub(crate) async fn open_question_record(
        &self,
        outer: &CallHeader,
        question: ServerQuestion<'_>,
    ) -> Result<Box<dyn QuestionRecord>, ToolError> {
        let name = question.request.name_at(question.server);
        let opened = CallStarted {
            id: CallId::fresh(),
            principal: outer.caller.principal.clone(),
            frontend: outer.frontend,
            profile: outer.profile.clone(),
            method: RecordedMethod::Question(question.request),
            name: name.clone(),
            arguments: self.audit_log.fingerprint(question.params.to_json().bytes()),
            shown: None,
            trace: Some(outer.trace.clone().unwrap_or_else(|| trace_parent(outer.id))),
        };
        let mut record = AuditRecord::of_question(&self.audit_log, opened).await?;
        let decision = self.decide_question(outer, &name, question.refusal, &mut record).await;
        match decision {
            Ok(()) => Ok(Box::new(record)),
            Err(error) => {
                record.set_outcome(&Err(error.clone()));
                Err(error)
            }
        }
    }

    async fn decide_question(
        &self,
        outer: &CallHeader,
        name: &str,
        refusal: Option<ToolError>,
        record: &mut AuditRecord,
    ) -> Result<(), ToolError> {
        if let Some(refusal) = refusal {
            record.set_rule("questions");
            return Err(refusal);
        }
        let rules = self.rules();
        let request = QuestionRequest { caller: &outer.caller, profile: &outer.profile, name };
        if let Some(denial) = rules.policy.deny_question(&request) {
            record.set_rule(&denial.rule);
            return Err(denial.into());
        }
        rules.limits.check_question(&outer.caller, name).await
    }
}

impl QuestionRecord for AuditRecord {
    fn close(mut self: Box<Self>, outcome: Outcome) {
        self.set_question_outcome(outcome);
    }
}
