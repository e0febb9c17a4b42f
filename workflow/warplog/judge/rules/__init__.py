"""Rules of the audit for the sentences about steps and expectations."""
