//! The arguments that a submitted form stands for.

use serde_json::{Map, Value};

use super::{SchemaForm, field::FieldError};
use crate::form_fields::FormFields;

impl SchemaForm {
    /// Enters what was submitted, and returns the arguments. If a value is not accepted, its field has an error and there are no
    /// arguments.
    pub(crate) fn read(&mut self, submitted: &FormFields) -> Option<Map<String, Value>> {
        let mut arguments = Map::new();
        let mut is_complete = true;
        for field in &mut self.fields {
            field.value = submitted.get(&field.name()).to_owned();
            match field.argument() {
                Ok(Some(Value::Object(all))) if self.is_raw => arguments = all,
                Ok(Some(_)) if self.is_raw => {
                    field.error = Some(FieldError::InvalidJson);
                    is_complete = false;
                }
                Ok(Some(value)) => drop(arguments.insert(field.property.clone(), value)),
                Ok(None) => {}
                Err(error) => {
                    field.error = Some(error);
                    is_complete = false;
                }
            }
        }
        is_complete.then_some(arguments)
    }
}
